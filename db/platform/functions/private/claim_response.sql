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
