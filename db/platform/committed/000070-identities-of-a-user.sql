--! Previous: sha1:e55fca0f26c4db1d80d07889b8d2bfefe24adf1c
--! Hash: sha1:07e5bd82f97ea85086b47b6be938fef8f7153656
--! Message: identities of a user

--! Included auth/link_identity.sql
create or replace function auth.link_identity(
  user_id bigint, provider auth.providers, subject text, left_at timestamptz, client_info auth.client_info
) returns text as $$
declare
  v_most constant integer := 50;
  v_account constant auth.users := auth.lock_account(link_identity.user_id);
begin
  if v_account.user_id is null or auth.is_disabled(v_account) then
    return 'disabled';
  end if;
  -- The link may have been started by whoever knew the previous password.
  if v_account.password_changed_at > link_identity.left_at then
    return 'ended';
  end if;
  -- A provider may give one person as many subjects as the person registers there.
  if (select count(*) from auth.identities as own where own.user_id = v_account.user_id) >= v_most and not exists (
    select from auth.identities as own
    where own.user_id = v_account.user_id and own.issuer = provider.issuer and own.subject = link_identity.subject
  ) then
    return 'too_many';
  end if;
  insert into auth.identities as known (issuer, subject, user_id, is_vouched)
    values (provider.issuer, link_identity.subject, v_account.user_id, true)
    on conflict on constraint identities_pkey do update set is_vouched = true where known.user_id = EXCLUDED.user_id;
  if not found then
    return 'taken';
  end if;
  perform auth.log_event('identity.linked', v_account.user_id, client_info, jsonb_build_object('provider', provider.name));
  return 'linked';
end;
$$ language plpgsql set search_path = '';
comment on function auth.link_identity is
  'Links an identity to the user who is signed in: linked, taken (it is another user''s), too_many, or ended (the password was changed meanwhile).';
--! EndIncluded auth/link_identity.sql
