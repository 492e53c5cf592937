INSERT INTO tally_node AS t (node_no, said_at) VALUES ($1, $2)
    ON CONFLICT (node_no) DO UPDATE SET said_at = greatest(t.said_at, excluded.said_at);
