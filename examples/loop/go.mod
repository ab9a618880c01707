module slug

go 1.26
