create or replace function auth.user_factors(account auth.users) returns jsonb as $$
  select coalesce(jsonb_agg(jsonb_build_object(
    'id', factor.id,
    'friendly_name', factor.friendly_name,
    'factor_type', factor.factor_type,
    'status', case factor.state when 'enabled' then 'verified' else 'unverified' end,
    'created_at', factor.created_at,
    'updated_at', factor.updated_at,
    'last_challenged_at', factor.last_challenged_at
  ) order by factor.created_at, factor.id), '[]')
  from auth.mfa_factors as factor where factor.user_id = account.user_id;
$$ language sql stable set search_path = '';
comment on function auth.user_factors is 'The second factors of the user, as clients of Supabase Auth read them.';
