create or replace function auth.account_of(user_id bigint) returns table (
  name text, email text, username text, role text, is_verified boolean, has_password boolean,
  factor_enabled_at timestamptz, backup_codes integer
) as $$
begin
  return query
    select profile.name, profile.email, account.username, auth.claims_of(account.user_id) ->> 'role',
      coalesce(lower(account.verified_email) = lower(profile.email), false), account.password_hash is not null,
      (
        select min(factor.enabled_at) from auth.mfa_factors as factor
        where factor.user_id = account.user_id and factor.factor_type = 'totp'
      ),
      (select count(*)::integer from auth.mfa_backup_codes as codes where codes.user_id = account.user_id and codes.used_at is null)
    from auth.users as account
    cross join auth.profile_of(account.user_id) as profile
    where account.user_id = account_of.user_id;
end;
$$ language plpgsql stable set search_path = '';
comment on function auth.account_of is 'What a user sees of the own account.';
