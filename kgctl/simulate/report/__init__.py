"""What people and machines read of a simulation: terminal, Markdown, JUnit XML, JSON lines, one HTML file.

Everything here is a pure function of a `view.Outcome` to text or bytes; nothing knows the engine, the runner or the command line.
"""
