-- Absent values are left out, except in metadata.
create or replace function auth.user_json(user_id bigint) returns jsonb
language sql stable
begin atomic
  select jsonb_strip_nulls(jsonb_build_object(
    'id', account.id,
    'aud', 'authenticated',
    'role', coalesce(
      (select user_roles.role from auth.user_roles where user_roles.user_id = account.user_id), 'authenticated'
    ),
    'email', coalesce(auth.own_email(account), ''),
    'email_confirmed_at', account.email_confirmed_at,
    'new_email', auth.pending_email(account.user_id),
    'email_change_sent_at', sent.email_change,
    'confirmation_sent_at', sent.confirmation,
    'recovery_sent_at', sent.recovery,
    'phone', coalesce(account.phone, ''),
    'phone_confirmed_at', account.phone_confirmed_at,
    'confirmed_at', least(account.email_confirmed_at, account.phone_confirmed_at),
    'invited_at', account.invited_at,
    'last_sign_in_at', account.last_sign_in_at,
    'created_at', account.created_at,
    'updated_at', account.updated_at,
    'banned_until', account.banned_until,
    'deleted_at', account.deleted_at,
    'is_anonymous', account.is_anonymous,
    'is_sso_user', nullif(account.is_sso_user, false)
  )) || jsonb_build_object(
    'app_metadata', account.raw_app_meta_data || jsonb_strip_nulls(jsonb_build_object(
      'provider', auth.providers_of(account.user_id) -> 0, 'providers', auth.providers_of(account.user_id)
    )),
    'user_metadata', account.raw_user_meta_data,
    'identities', auth.user_identities(account),
    'factors', auth.user_factors(account)
  )
  from auth.users as account
  cross join lateral (
    select max(token.created_at) filter (where token.purpose in ('email_change_new', 'email_change_current')) as email_change,
      max(token.created_at) filter (where token.purpose in ('signup', 'verify')) as confirmation,
      max(token.created_at) filter (where token.purpose in ('recovery', 'reset')) as recovery
    from auth.mail_tokens as token where token.user_id = account.user_id
  ) as sent
  where account.user_id = user_json.user_id;
end;

comment on function auth.user_json is 'The user as clients of Supabase Auth read it; null without such an account.';
