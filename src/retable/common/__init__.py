"""What every paper shares: data, training, statistics, tables, figures, claims. Knows no paper."""
