module crikeep.test/nri-record

go 1.19
