SELECT j.id
  FROM unnest($2::int8[]) WITH ORDINALITY AS d(number, nth)
  LEFT JOIN job j ON j.tenant_no = $1 AND j.number = d.number AND j.standing <> 3
 ORDER BY d.nth;
