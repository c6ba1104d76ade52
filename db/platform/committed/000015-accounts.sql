--! Previous: sha1:bf12392c0308ddd7e91d62caba1cd5c81471c8f0
--! Hash: sha1:5503c4af35ad7525fafe9338d7d38c024650fb17
--! Message: accounts

-- The tables of schema auth are closed: row-level security without a policy, and no grant to any role of a request. The functions
-- of schema auth are the rules of signing in; the service calls them as the owner.
--
-- A function that changes how a user signs in calls auth.lock_account first, which locks the account: concurrent changes of one
-- account are serialized.
--
-- user_id refers to public.users of the application, whose own migrations add the foreign keys (see content/000002-sign-in.sql).
create table auth.credentials (
  user_id             bigint primary key,
  username            text not null check (btrim(username) <> ''),
  -- A PHC string ($argon2id$…); null for users who only sign in through another provider.
  password_hash       text check (password_hash like '$%'),
  password_changed_at timestamptz not null default now(),
  disabled_at         timestamptz,
  created_at          timestamptz not null default now(),
  tokens_valid_from   timestamptz not null default date_trunc('second', now()),
  verified_email      text,
  -- Another user's e-mail address as a user name would sign in to the wrong account. Basic authentication ends a name at a colon.
  constraint credentials_username_format
    check (username like '%@%' or username ~ '^[^\s:[:cntrl:]]{1,254}$')
);
alter table auth.credentials
  add constraint credentials_username_max_length check (length(username) <= 254) not valid,
  add constraint credentials_verified_email_max_length check (length(verified_email) <= 254) not valid;
create unique index credentials_username_any_case_key on auth.credentials (lower(username));
alter table auth.credentials enable row level security;

comment on table auth.credentials is 'The credentials of a user. A user without a row cannot sign in.';
comment on column auth.credentials.username is
  'The e-mail address unless another name, without @, was chosen; unique whatever its case.';
comment on column auth.credentials.password_changed_at is
  'Sessions and refresh tokens from before this moment have ended.';
comment on column auth.credentials.disabled_at is 'When the account was disabled; null if it is enabled.';
comment on column auth.credentials.tokens_valid_from is
  'Access tokens issued before this moment have ended. In whole seconds, like the iat of a token.';
comment on column auth.credentials.verified_email is
  'The address whose mail the user has proved to read; the user is verified while it is the current address.';
comment on constraint credentials_username_format on auth.credentials is
  'A user name has 1 to 254 characters, and neither spaces, nor colons, nor an @ unless it is the e-mail address.';
comment on constraint credentials_username_max_length on auth.credentials is
  'Give a user name of at most 254 characters.';
comment on index auth.credentials_username_any_case_key is 'This user name is already taken.';

create table auth.deleted_accounts (
  user_id    bigint primary key,
  deleted_at timestamptz not null default now()
);
create index on auth.deleted_accounts (deleted_at);
alter table auth.deleted_accounts enable row level security;
comment on table auth.deleted_accounts is
  'Deleted accounts, kept for a day: longer than the tokens that still name them.';

--! Included auth/lock_account.sql
-- Locks the user first and then the account, in the order of a deletion; otherwise the two could deadlock.
create or replace function auth.lock_account(user_id bigint) returns auth.credentials as $$
declare
  v_account auth.credentials;
begin
  perform from public.users where users.id = lock_account.user_id for key share;
  select * into v_account from auth.credentials where credentials.user_id = lock_account.user_id for no key update;
  return v_account;
end;
$$ language plpgsql set search_path = '';
comment on function auth.lock_account is
  'Locks the account until the end of the transaction and returns it; later queries see what the previous holder committed.';
--! EndIncluded auth/lock_account.sql
--! Included auth/end_access_tokens.sql
-- One second later than the latest token that was issued.
create or replace function auth.end_access_tokens(user_id bigint) returns void as $$
  update auth.credentials
  set tokens_valid_from = greatest(date_trunc('second', clock_timestamp()), tokens_valid_from) + interval '1 second'
  where credentials.user_id = end_access_tokens.user_id;
$$ language sql set search_path = '';
comment on function auth.end_access_tokens is 'Ends all access tokens of the user; new ones can be issued at once.';
--! EndIncluded auth/end_access_tokens.sql
--! Included auth/account_states.sql
-- Returns no row for unknown users: another issuer that shares the keys may name any subject.
create or replace function auth.account_states(user_ids bigint[])
returns table (user_id bigint, state text, tokens_valid_from bigint)
language sql stable
begin atomic
  select credentials.user_id, case when credentials.disabled_at is null then 'active' else 'disabled' end,
    extract(epoch from credentials.tokens_valid_from)::bigint
  from auth.credentials where credentials.user_id = any (account_states.user_ids)
  union all
  select deleted_accounts.user_id, 'deleted', null
  from auth.deleted_accounts
  where deleted_accounts.user_id = any (account_states.user_ids)
    and not exists (select from auth.credentials where credentials.user_id = deleted_accounts.user_id);
end;

comment on function auth.account_states is 'Which of these accounts are active, disabled or deleted.';
--! EndIncluded auth/account_states.sql
--! Included auth/username_fault.sql
create or replace function auth.username_fault(username text, email text) returns text
language sql immutable set search_path = ''
as $$
  select case
    when username like '%@%' and lower(username) <> lower(email)
      then 'A user name with an @ can only be your own e-mail address'
    when username not like '%@%' and username !~ '^[^\s:[:cntrl:]]{1,254}$'
      then 'A user name has 1 to 254 characters, and neither spaces nor colons'
  end
$$;
comment on function auth.username_fault is
  'Why a user with that address cannot have this user name; null when it is acceptable.';
--! EndIncluded auth/username_fault.sql
--! Included auth/account_faults.sql
-- An insert reports one violated constraint; a form needs all of them at once.
create or replace function auth.account_faults(name text, email text, age integer, username text)
returns setof public.field_error as $$
declare
  v_row constant jsonb := jsonb_build_object('name', name, 'email', email, 'age', age);
  v_rule record;
  v_is_broken boolean;
begin
  for v_rule in
    select rule.conname, pg_get_expr(rule.conbin, rule.conrelid) as condition
    from pg_constraint as rule
    where rule.conrelid = 'public.users'::regclass and rule.contype = 'c'
    order by rule.conkey, rule.conname
  loop
    execute format('select (%s) is false from jsonb_populate_record(null::public.users, $1)', v_rule.condition)
      into v_is_broken using v_row;
    if v_is_broken then
      return next api.field_error('public.users', v_rule.conname);
    end if;
  end loop;
  if auth.username_fault(username, email) is not null then
    return next row('username', auth.username_fault(username, email))::public.field_error;
  end if;
end;
$$ language plpgsql stable set search_path = '';
comment on function auth.account_faults is
  'Everything that prevents such a user from being registered, except values that are taken.';
--! EndIncluded auth/account_faults.sql
--! Included auth/tg_credentials__remember_deletion.sql
-- Runs as whoever deletes a user. Each call deletes a few records that no token can name any more.
create or replace function auth.tg_credentials__remember_deletion() returns trigger as $$
begin
  insert into auth.deleted_accounts (user_id) values (OLD.user_id)
    on conflict (user_id) do update set deleted_at = now();
  delete from auth.deleted_accounts where user_id in (
    select user_id from auth.deleted_accounts where deleted_at < now() - interval '1 day'
    order by deleted_at limit 10 for update skip locked
  );
  perform auth.log_event('account.deleted', OLD.user_id, null);
  return null;
end;
$$ language plpgsql security definer set search_path = '';
comment on function auth.tg_credentials__remember_deletion is
  'After delete: records the account, whose tokens have ended.';
--! EndIncluded auth/tg_credentials__remember_deletion.sql
create trigger _100_remember_deletion after delete on auth.credentials
  for each row execute function auth.tg_credentials__remember_deletion();
