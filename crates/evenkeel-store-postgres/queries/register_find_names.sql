SELECT d.nth::int8, j.id
  FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS d(name, configuration, nth)
  JOIN job j ON j.tenant_no = $1 AND j.name = d.name AND j.configuration = d.configuration
 WHERE j.standing <> 3;
