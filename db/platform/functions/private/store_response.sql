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
