"""How the embedded pair was made; development only, needs torch (requirements.txt)."""
