create or replace function auth.rename_passkey(user_id bigint, passkey_id uuid, friendly_name text) returns auth.passkeys as $$
  update auth.passkeys as passkey set friendly_name = rename_passkey.friendly_name, updated_at = now()
  where passkey.id = passkey_id and passkey.user_id = rename_passkey.user_id and passkey.factor_id is null
  returning passkey.*;
$$ language sql set search_path = '';
comment on function auth.rename_passkey is 'Names a passkey of that user; null if there is no such passkey.';
