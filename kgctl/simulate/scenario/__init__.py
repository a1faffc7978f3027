"""The scenario language: what a file may say, and the values that it stands for."""
