-- A counter that does not increase means that the passkey was copied. Most passkeys of today have none: theirs is always 0.
create or replace function auth.use_passkey(passkey_id uuid, counter bigint, is_backed_up boolean) returns boolean as $$
begin
  update auth.passkeys as passkey
    set counter = use_passkey.counter, is_backed_up = use_passkey.is_backed_up, last_used_at = now()
    where passkey.id = passkey_id
      and (passkey.counter < use_passkey.counter or (passkey.counter = 0 and use_passkey.counter = 0));
  return found;
end;
$$ language plpgsql set search_path = '';
comment on function auth.use_passkey is 'Records a use of the passkey. False: its counter has not increased, or it was removed.';
