echo {}
