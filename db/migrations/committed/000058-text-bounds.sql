--! Previous: sha1:8ad4c27451777c238e44d337c36f39bb32beda91
--! Hash: sha1:bc4f0ea9a26a18ac8538658e7d58bc875d1d9e11
--! Message: text bounds

--! split: 0010-text-bounds.sql
-- One row could be as long as a request body: every page that held it was then too large to be answered, for everybody.
-- Not valid: longer rows that exist already stay readable, and their owners can shorten or delete them.
alter table public.users drop constraint if exists users_name_max_length;
alter table public.users add constraint users_name_max_length check (length(name) <= 200) not valid;
comment on constraint users_name_max_length on public.users is 'Give a name of at most 200 characters.';
comment on column public.users.name is 'The name others see, at most 200 characters.';

alter table public.articles
  drop constraint if exists articles_title_max_length,
  drop constraint if exists articles_content_max_length,
  drop constraint if exists articles_summary_max_length,
  drop constraint if exists articles_tags_max_count,
  drop constraint if exists articles_tags_max_length;
-- The bytes first: they are known without decompressing the text, which every update of the row would do otherwise. A list
-- of empty tags has no bytes, so they are counted besides.
alter table public.articles
  add constraint articles_title_max_length check (length(title) <= 300) not valid,
  add constraint articles_content_max_length
    check (octet_length(content) <= 1000000 or length(content) <= 1000000) not valid,
  add constraint articles_summary_max_length check (length(summary) <= 2000) not valid,
  add constraint articles_tags_max_count check (cardinality(tags) <= 100) not valid,
  add constraint articles_tags_max_length check (array_to_string(tags, e'\n') !~ '[^\n]{101}') not valid;
comment on constraint articles_title_max_length on public.articles is 'Give a title of at most 300 characters.';
comment on constraint articles_content_max_length on public.articles is
  'Write at most 1,000,000 characters of content.';
comment on constraint articles_summary_max_length on public.articles is
  'Give a summary of at most 2,000 characters, or none.';
comment on constraint articles_tags_max_count on public.articles is 'Give at most 100 tags.';
comment on constraint articles_tags_max_length on public.articles is 'Give tags of at most 100 characters each.';
comment on column public.articles.title is '5 to 300 characters.';
comment on column public.articles.content is 'The text itself, at most 1,000,000 characters.';
comment on column public.articles.summary is
  'The author''s own summary, at most 2,000 characters; null when there is none.';
comment on column public.articles.tags is
  e'@notNullItems\nWords to find it by: at most 100, of at most 100 characters each, 2,000 bytes in all.';

alter table public.article_translations drop constraint if exists article_translations_title_max_length;
alter table public.article_translations add constraint article_translations_title_max_length
  check (length(title) <= 300) not valid;
comment on constraint article_translations_title_max_length on public.article_translations is
  'Give a title of at most 300 characters.';
comment on column public.article_translations.title is 'The title in that language, 5 to 300 characters.';

alter table public.comments drop constraint if exists comments_content_max_length;
alter table public.comments add constraint comments_content_max_length check (length(content) <= 10000) not valid;
comment on constraint comments_content_max_length on public.comments is
  'Write a comment of at most 10,000 characters.';
comment on column public.comments.content is 'The text itself; not empty, at most 10,000 characters.';

-- Texts of schema auth that come from anonymous callers. The service checks each before it gets here.
alter table auth.credentials
  drop constraint if exists credentials_username_max_length,
  drop constraint if exists credentials_verified_email_max_length;
alter table auth.credentials
  add constraint credentials_username_max_length check (length(username) <= 254) not valid,
  add constraint credentials_verified_email_max_length check (length(verified_email) <= 254) not valid;
comment on constraint credentials_username_max_length on auth.credentials is
  'Give a user name of at most 254 characters.';
alter table auth.mail_tokens drop constraint if exists mail_tokens_email_max_length;
alter table auth.mail_tokens add constraint mail_tokens_email_max_length check (length(email) <= 254) not valid;
alter table auth.sessions drop constraint if exists sessions_user_agent_max_length;
alter table auth.sessions add constraint sessions_user_agent_max_length check (length(user_agent) <= 500) not valid;
alter table auth.audit_log drop constraint if exists audit_log_request_id_max_length;
alter table auth.audit_log add constraint audit_log_request_id_max_length check (length(request_id) <= 128) not valid;
-- A user name, a space and an address.
alter table auth.login_throttle drop constraint if exists login_throttle_key_max_length;
alter table auth.login_throttle add constraint login_throttle_key_max_length check (length(key) <= 600) not valid;
alter table auth.federation_states
  drop constraint if exists federation_states_redirect_to_max_length,
  drop constraint if exists federation_states_code_challenge_max_length;
alter table auth.federation_states
  add constraint federation_states_redirect_to_max_length check (length(redirect_to) <= 4096) not valid,
  add constraint federation_states_code_challenge_max_length check (length(code_challenge) <= 128) not valid;
alter table auth.identities drop constraint if exists identities_subject_max_length;
alter table auth.identities add constraint identities_subject_max_length check (octet_length(subject) <= 1024) not valid;
-- A provider's name for somebody is not checked by any form of ours.
--! Included auth/federated_user.sql
-- An identity is found by issuer and subject. By e-mail address only where both the provider and we have verified it:
-- else whoever enters somebody's address there, or here before them, would share the account.
create or replace function auth.federated_user(
  provider auth.providers, subject text, claims jsonb, sender auth.sender, out outcome text, out user_id bigint
) as $$
declare
  v_email constant text := nullif(btrim(claims ->> 'email'), '');
  v_local_part constant text := split_part(v_email, '@', 1);
  v_is_vouched constant boolean := provider.trusts_email or coalesce((claims ->> 'email_verified')::boolean, false);
  v_identity auth.identities;
  v_account auth.credentials;
  v_user public.users;
begin
  -- Two who come for the first time at once are one.
  perform pg_advisory_xact_lock(hashtextextended(provider.issuer || ' ' || subject, 0));
  select * into v_identity from auth.identities
    where identities.issuer = provider.issuer and identities.subject = federated_user.subject;
  if found then
    v_account := auth.hold_account(v_identity.user_id);
    -- Again, as whoever held the account before has left it.
    select * into v_identity from auth.identities
      where identities.issuer = provider.issuer and identities.subject = federated_user.subject;
    user_id := v_account.user_id;
    -- Somebody has since set a password by mail: the account is theirs alone, and so is what the provider says is of that address.
    outcome := case
      when v_identity.is_vouched or v_account.password_changed_at <= v_identity.created_at
        or v_is_vouched and lower(v_email collate "C") = lower(v_account.verified_email collate "C")
      then 'found'
      else 'conflict'
    end;
    return;
  end if;

  select * into v_user from public.users where lower(users.email) = lower(v_email) for key share;
  if found then
    v_account := auth.hold_account(v_user.id);
    -- To mail servers letters are the same in any case within ASCII alone: the sign for kelvin is no k.
    if not v_is_vouched or lower(v_email collate "C") <> lower(v_user.email collate "C")
      or v_account.user_id is not null
        and lower(v_account.verified_email collate "C") is distinct from lower(v_user.email collate "C")
    then
      outcome := 'conflict';
      return;
    end if;
    -- A user whom somebody has entered, and who could not sign in until now.
    insert into auth.credentials (user_id, username, verified_email) values (v_user.id, v_user.email, v_user.email)
      on conflict on constraint credentials_pkey do nothing;
    outcome := 'linked';
  elsif not provider.sign_ups then
    outcome := 'closed';
    return;
  elsif v_email is null then
    outcome := 'nameless';
    return;
  else
    begin
      v_user := auth.register(left(coalesce(btrim(claims ->> 'name'), v_local_part), 200), v_email, null, null, null, sender);
    exception when sqlstate 'WRONG' then
      -- A name that nobody could read. If it is the address, that is said now.
      v_user := auth.register(left(v_local_part, 200), v_email, null, null, null, sender);
    end;
    update auth.credentials set verified_email = v_user.email where credentials.user_id = v_user.id and v_is_vouched;
    outcome := 'registered';
  end if;
  user_id := v_user.id;
  insert into auth.identities (issuer, subject, user_id, is_vouched)
    values (provider.issuer, federated_user.subject, v_user.id, v_is_vouched);
  perform auth.log_event('identity.linked', v_user.id, sender, jsonb_build_object('provider', provider.name));
end;
$$ language plpgsql set search_path = '';
comment on function auth.federated_user is
  'Whose account that is: found, linked or registered; or why it is nobody''s: conflict, closed, nameless. The account is held.';
--! EndIncluded auth/federated_user.sql
