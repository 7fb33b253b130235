// No server answers for this path yet: a module that requires it replaces it with a directory (README.md).
module crikeep.io/go

go 1.21
