{"kind": "hloforge.signature", "algorithm": "ed25519", "signature": "xMJXNlJ6fIbgU881cDbgqgJqSO8YXykhieVdkfe9u/aBdx6oOdiipwEFGSdN1L3DP7U2g8AhkjuLOdF4OX5DBA=="}
