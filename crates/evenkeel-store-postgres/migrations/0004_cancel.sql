-- Somebody wants the attempt ended: whatever becomes of it, it is not tried again.
ALTER TABLE run ADD COLUMN cancel_asked bool NOT NULL DEFAULT false;
