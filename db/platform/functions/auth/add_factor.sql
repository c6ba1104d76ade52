-- Several factors per user. The limits and outcomes are those of Supabase Auth, which its clients know. An unverified factor that
-- nobody has challenged for five minutes was abandoned.
create or replace function auth.add_factor(
  user_id bigint, factor_type text, friendly_name text, secret text, session_id uuid, client_info auth.client_info,
  out outcome text, out factor auth.mfa_factors
) as $$
declare
  v_most constant integer := 10;
  v_account constant auth.users := auth.lock_account(add_factor.user_id);
begin
  if v_account.user_id is null then
    outcome := 'no_account';
    return;
  end if;
  delete from auth.mfa_factors as abandoned
    where abandoned.user_id = v_account.user_id and abandoned.state = 'pending'
      and greatest(abandoned.created_at, abandoned.last_challenged_at) < now() - interval '5 minutes';
  outcome := case
    when exists (
      select from auth.mfa_factors as other
      where other.user_id = v_account.user_id and other.friendly_name = add_factor.friendly_name
    ) then 'name_taken'
    when (select count(*) from auth.mfa_factors as other where other.user_id = v_account.user_id) >= v_most then 'too_many'
    when auth.has_factor(v_account.user_id) and not auth.has_second_factor_session(v_account.user_id, session_id) then 'level'
    else 'added'
  end;
  if outcome <> 'added' then
    return;
  end if;
  insert into auth.mfa_factors as added (user_id, factor_type, friendly_name, secret)
    values (v_account.user_id, add_factor.factor_type, add_factor.friendly_name, add_factor.secret)
    returning * into factor;
  perform auth.log_event(
    'factor.enrolled', v_account.user_id, client_info,
    jsonb_build_object('factor', factor.id, 'type', factor.factor_type)
  );
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_factor is
  'Adds a pending factor: added; or name_taken, too_many, level when the sign-in must prove a second factor first, no_account.';
