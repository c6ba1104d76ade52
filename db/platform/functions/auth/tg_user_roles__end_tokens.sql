create or replace function auth.tg_user_roles__end_tokens() returns trigger as $$
declare
  v_key_id bigint;
begin
  if NEW.role is distinct from OLD.role then
    perform auth.end_access_tokens(coalesce(NEW.user_id, OLD.user_id));
    -- A key in the role would be a way to keep it.
    for v_key_id in
      update auth.api_keys set revoked_at = now()
        where owner_id = OLD.user_id and role = OLD.role and revoked_at is null
        returning id
    loop
      perform auth.log_event('api_key.revoked', OLD.user_id, null, jsonb_build_object('api_key', v_key_id));
    end loop;
  end if;
  return null;
end;
$$ language plpgsql security definer set search_path = '';
comment on function auth.tg_user_roles__end_tokens is
  'After a change: ends tokens that name the previous role, and the user''s keys in it.';
