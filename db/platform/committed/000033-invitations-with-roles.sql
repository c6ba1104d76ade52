--! Previous: sha1:cc03a9457b3704c362b6284cfbdbb16788e69412
--! Hash: sha1:10e3eaf89ca39d7debadb4984f0cd20421351c4d
--! Message: invitations with roles

-- An invitation has a role, which the user gets by accepting it: nobody has the role before the address is proved. An invitation has no code,
-- because six digits could be guessed.
alter table auth.mail_tokens
  add column role text,
  add column inviter_id bigint,
  drop constraint content_service_mail_tokens_purpose_check,
  add constraint content_service_mail_tokens_purpose_check check (purpose in (
    'reset', 'verify', 'change', 'signup', 'invite', 'invitation', 'magiclink', 'recovery', 'email_change_current', 'email_change_new',
    'reauthentication', 'sms', 'sms_signup', 'phone_change'
  )),
  add constraint content_service_mail_tokens_role_check check ((role is not null) = (purpose = 'invitation'));
comment on column auth.mail_tokens.role is 'The role that the user gets by accepting the invitation.';
comment on column auth.mail_tokens.inviter_id is 'The administrator who has invited the user, whose right to do so is asked again when the invitation is accepted; null if it was none with an account.';

create function auth.may_invite(inviter_id bigint) returns boolean
language sql stable set search_path = '' as $$
  select inviter_id is null or exists (
    select from auth.users as account join auth.user_roles using (user_id)
    where account.user_id = may_invite.inviter_id and not auth.is_disabled(account)
      and pg_has_role(to_regrole(quote_ident(user_roles.role)), 'admin', 'usage')
  );
$$;
comment on function auth.may_invite is 'Whether the inviter is an administrator now.';

create function auth.begin_invitation(
  token_hash bytea, user_id bigint, role text, seconds integer, sign_up jsonb, client_info auth.client_info
) returns text language plpgsql set search_path = '' as $$
declare
  v_address text;
begin
  if not exists (select from auth.roles where roles.name = begin_invitation.role and assignable) then
    raise exception 'There is no role of that name for users' using errcode = 'WRONG', detail = 'role';
  end if;
  if not auth.may_invite(client_info.actor) then
    raise exception 'Only administrators may invite users' using errcode = '42501';
  end if;
  perform auth.invite_account(begin_invitation.user_id, client_info);
  select profile.email into v_address from auth.profile_of(begin_invitation.user_id) as profile;
  perform auth.replace_mail_tokens(begin_invitation.user_id, 'invitation', null);
  insert into auth.mail_tokens (token_hash, purpose, user_id, email, expires_at, user_name, user_metadata, role, inviter_id)
    values (
      begin_invitation.token_hash, 'invitation', begin_invitation.user_id, v_address, now() + make_interval(secs => seconds),
      sign_up ->> 'name', nullif(sign_up -> 'metadata', 'null'), begin_invitation.role, client_info.actor
    );
  return v_address;
end;
$$;
comment on function auth.begin_invitation is 'Stores the link of an invitation, in place of an earlier one, and returns the address to send it to. The caller has locked the account.';

create function auth.find_invitation(token_hash bytea) returns table (user_id bigint, email text, role text)
language sql stable set search_path = '' as $$
  select token.user_id, token.email, token.role
  from auth.mail_tokens as token join auth.find_mail_token(find_invitation.token_hash, 'invitation') as found using (user_id)
  where token.token_hash = find_invitation.token_hash and auth.may_invite(token.inviter_id);
$$;
comment on function auth.find_invitation is 'The invitation of a link that can be used: it has not expired, and its inviter is an administrator still.';

create function auth.accept_invitation(token_hash bytea, password_hash text, client_info auth.client_info) returns bigint
language plpgsql set search_path = '' as $$
declare
  v_account auth.users;
  v_token auth.mail_tokens;
begin
  select token.user_id into v_account.user_id from auth.mail_tokens as token where token.token_hash = accept_invitation.token_hash;
  v_account := auth.lock_account(v_account.user_id);
  if not exists (select from auth.find_invitation(accept_invitation.token_hash)) then
    return null;
  end if;
  select * into v_token from auth.mail_tokens as token where token.token_hash = accept_invitation.token_hash;
  perform auth.confirm_mail_code(v_token, v_account, client_info);
  perform auth.set_password(v_token.user_id, accept_invitation.password_hash);
  if v_token.role <> 'authenticated' then
    perform auth.assign_role(
      v_token.user_id, v_token.role,
      row (client_info.address, client_info.user_agent, client_info.request_id, v_token.inviter_id)::auth.client_info
    );
  end if;
  perform auth.log_event('invitation.accepted', v_token.user_id, client_info, jsonb_build_object('role', v_token.role));
  return v_token.user_id;
end;
$$;
comment on function auth.accept_invitation is 'Spends the link, which proves the address, ends all that the account had before, and sets password and role. Null: the link is invalid.';
