SELECT coalesce(sum(completed), 0)::int8, coalesce(sum(failed), 0)::int8,
       coalesce(sum(timed_out), 0)::int8, coalesce(sum(cancelled), 0)::int8,
       coalesce(sum(retries), 0)::int8, coalesce(sum(stolen), 0)::int8,
       coalesce(sum(good_us), 0)::int8,
       (SELECT coalesce(sum(r.running), 0)::int8
          FROM node n JOIN tally_running r ON r.node_no = n.node_no AND r.tenant_no = $1
         WHERE n.state IN (0, 1)),
       (SELECT max(said_at) FROM tally_node)
  FROM tally WHERE tenant_no = $1;
