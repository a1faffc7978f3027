"""The kinds of events, each a class: a module here is read without being named anywhere."""
