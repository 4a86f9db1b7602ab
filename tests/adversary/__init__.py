"""Lost rows that an adversary found."""
