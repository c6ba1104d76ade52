-- An account with an address of its own has an identity of provider email, besides those of identity providers. Its id is derived from
-- the account's, so that it stays the same.
create or replace function auth.user_identities(account auth.users) returns jsonb
as $$
  select coalesce(jsonb_agg(jsonb_build_object(
    'identity_id', identity.identity_id,
    'id', identity.subject,
    'user_id', account.id,
    'identity_data', jsonb_build_object(
      'sub', identity.subject, 'email', coalesce(auth.own_email(account), ''), 'email_verified', identity.is_verified,
      'phone_verified', account.phone_confirmed_at is not null
    ),
    'provider', identity.provider,
    'last_sign_in_at', identity.last_sign_in_at,
    'created_at', identity.created_at,
    'updated_at', coalesce(identity.last_sign_in_at, identity.created_at),
    'email', coalesce(auth.own_email(account), '')
  ) order by identity.created_at, identity.provider), '[]')
  from (
    select md5('email ' || account.id)::uuid as identity_id, account.id::text as subject, 'email' as provider,
      account.email_confirmed_at is not null as is_verified, account.last_sign_in_at, account.created_at
    where auth.own_email(account) is not null
      and (account.password_hash is not null or not exists (
        select from auth.identities as linked where linked.user_id = account.user_id
      ))
    union all
    select md5('phone ' || account.id)::uuid, account.id::text, 'phone', false, account.last_sign_in_at, account.created_at
    where account.phone_confirmed_at is not null
    union all
    select md5(linked.issuer || ' ' || linked.subject)::uuid, linked.subject, providers.name,
      linked.is_vouched, linked.last_used_at, linked.created_at
    from auth.identities as linked
    join auth.providers on providers.issuer = linked.issuer
    where linked.user_id = account.user_id
  ) as identity;
$$ language sql stable set search_path = '';
comment on function auth.user_identities is 'How the user can sign in, as clients of Supabase Auth read it.';
