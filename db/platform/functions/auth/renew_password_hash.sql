create or replace function auth.renew_password_hash(user_id bigint, old_hash text, new_hash text) returns void as $$
  update auth.users as account set password_hash = new_hash
  where account.user_id = renew_password_hash.user_id and password_hash = old_hash;
$$ language sql set search_path = '';
comment on function auth.renew_password_hash is 'The same password, hashed with the current parameters.';
