--! Previous: sha1:345f85c4198c589fb5f4b581f5a0a95e46077e9a
--! Hash: sha1:657a6f7252c550cfbf756869e7de5cbcdfc2e65b
--! Message: kept answers

-- The response to a request with an Idempotency-Key, stored in the transaction that made the change: a retry receives the same
-- response and changes nothing, whichever process it reaches.
--
-- The id is derived from the key and from the caller, and so is the secret that the response is encrypted with. Neither is stored
-- here, so nobody can read the contents, not even from a backup.
create table private.kept_answers (
  id            bytea primary key check (octet_length(id) = 32),
  sealed_answer bytea not null,
  expires_at    timestamptz not null
);
create index on private.kept_answers (expires_at);
-- Encrypted bytes do not compress.
alter table private.kept_answers alter sealed_answer set storage external;
alter table private.kept_answers enable row level security;

comment on table private.kept_answers is 'Responses that are repeated for the same Idempotency-Key until they expire.';
comment on column private.kept_answers.id is 'Derived from the key and from the caller.';
comment on column private.kept_answers.sealed_answer is
  'The response and a digest of its request, encrypted with a secret that only the sender of the key can derive.';

-- Granted to the login only: the service leaves the caller's role before it calls them. A caller who could call them, through
-- any function that is served, could forge responses.
--! Included private/claim_response.sql
-- A stored response is returned without claiming the id, so concurrent retries do not wait for one another. Otherwise one transaction at
-- a time has the id; a second one is told at once instead of waiting with a connection. After a rollback the id is free.
create or replace function private.claim_response(place text, out is_claimed boolean, out answer text) as $$
declare
  v_id bytea := decode(place, 'hex');
begin
  select encode(kept.sealed_answer, 'base64') into answer
    from private.kept_answers as kept where kept.id = v_id and kept.expires_at > now();
  is_claimed := answer is null and pg_try_advisory_xact_lock(('x' || left(place, 16))::bit(64)::bigint);
  if is_claimed then
    -- A separate statement after the lock was taken: it sees what the previous transaction committed.
    select encode(kept.sealed_answer, 'base64') into answer
      from private.kept_answers as kept where kept.id = v_id and kept.expires_at > now();
  end if;
end;
$$ language plpgsql security definer set search_path = '';
grant execute on function private.claim_response to authenticator;
comment on function private.claim_response is
  'Returns the stored response; without one claims the id until the end of the transaction, unless another transaction has it.';
--! EndIncluded private/claim_response.sql
--! Included private/store_response.sql
-- Each call deletes a few expired responses, so no periodic cleanup is needed.
create or replace function private.store_response(place text, answer text, seconds integer) returns void as $$
declare
  v_id bytea := decode(place, 'hex');
begin
  delete from private.kept_answers where id = v_id and expires_at <= now();
  insert into private.kept_answers (id, sealed_answer, expires_at)
    values (v_id, decode(answer, 'base64'), clock_timestamp() + make_interval(secs => seconds));
  -- Under stricter isolation, rows deleted by another transaction would fail this one (40001).
  if current_setting('transaction_isolation') = 'read committed' then
    delete from private.kept_answers where id in (
      select id from private.kept_answers where expires_at <= now()
      order by expires_at limit 10 for update skip locked
    );
  end if;
end;
$$ language plpgsql security definer set search_path = '';
grant execute on function private.store_response to authenticator;
comment on function private.store_response is 'Stores a response at the id that this transaction has claimed.';
--! EndIncluded private/store_response.sql
