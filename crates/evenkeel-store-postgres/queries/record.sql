INSERT INTO audit (at, tenant_no, subject, role, action, target, status, denied, detail, remote,
                   request_id)
SELECT * FROM unnest($1::int8[], $2::int4[], $3::text[], $4::int2[], $5::text[], $6::text[],
                     $7::int2[], $8::bool[], $9::text[], $10::text[], $11::text[])
