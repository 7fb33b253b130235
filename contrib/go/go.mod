// The import path is chosen here and nowhere else. Until a server answers for it, `go run ./internal/modproxy`
// makes a proxy of a directory: see README.md.
module crikeep.io/go

go 1.21
