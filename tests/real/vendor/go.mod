module crikeep.test/vendor

go 1.21

require crikeep.io/go v0.0.0

replace crikeep.io/go => ../../../contrib/go
