package ensemble
