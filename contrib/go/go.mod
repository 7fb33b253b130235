module crikeep.io/go

go 1.21
