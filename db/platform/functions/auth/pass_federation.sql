-- The result is a value, not an exception: the record that the message was used must be kept even when the sign-in is refused.
create or replace function auth.pass_federation(
  provider text, subject text, claims jsonb, linking bigint, left_at timestamptz, client_info auth.client_info,
  out outcome text, out user_id bigint
) as $$
declare
  v_provider auth.providers;
begin
  select * into v_provider from auth.providers where providers.name = pass_federation.provider and enabled for key share;
  if not found then
    outcome := 'gone';
    return;
  end if;

  if claims ? 'message_id' and not auth.use_message(
    v_provider.issuer, claims ->> 'message_id', (claims ->> 'message_expires_at')::timestamptz
  ) then
    outcome := 'replayed';
    return;
  end if;

  if linking is not null then
    outcome := auth.link_identity(linking, v_provider, subject, left_at, client_info);
    user_id := linking;
    return;
  end if;

  select * into outcome, user_id from auth.federated_user(v_provider, subject, claims, client_info);
  if user_id is null or outcome = 'conflict' then
    return;
  end if;
  if exists (
    select from auth.users as account where account.user_id = pass_federation.user_id and auth.is_disabled(account)
  ) then
    outcome := 'disabled';
    return;
  end if;
  update auth.identities set last_used_at = now()
    where identities.issuer = v_provider.issuer and identities.subject = pass_federation.subject;
  outcome := case
    when v_provider.trusts_factor and coalesce((claims ->> 'second_factor')::boolean, false) then 'passed'
    when auth.has_factor(pass_federation.user_id) then 'code_missing'
    else 'passed'
  end;
  if outcome = 'passed' then
    perform auth.log_event(
      'federation.signed_in', pass_federation.user_id, client_info, jsonb_build_object('provider', v_provider.name)
    );
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function auth.pass_federation is
  'The result of a sign-in through a provider: passed, linked, code_missing; or why it is refused.';
