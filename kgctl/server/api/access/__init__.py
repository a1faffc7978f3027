"""Who may do what, and how much of it: access control lists, logins and quotas."""
