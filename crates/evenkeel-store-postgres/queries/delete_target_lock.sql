-- First of all, as by whoever makes one or registers jobs: those may wait for rows that this changes.
SELECT tenant_no FROM numbering WHERE tenant_no = $1 FOR UPDATE;
