-- The schema as it is, to read and to compare. Made by: npm run migrate -- dump

-- schema api
create schema api;
grant usage on schema api to anon, authenticated, service_role;
comment on schema api is 'What the interfaces themselves are: their versions, the shape of their answers.';

-- schema auth
create schema auth;
grant usage on schema auth to anon, authenticated, service_role;
comment on schema auth is 'Who calls (helpers for policies) and how they proved it (closed tables).';

-- schema extensions
create schema extensions;
grant usage on schema extensions to anon, authenticated, service_role;
comment on schema extensions is 'Extensions, away from the tables that are served.';

-- schema private
create schema private;
comment on schema private is 'The inside of the book: functions of triggers, policies and indexes.';

-- schema public
create schema public;
grant usage on schema public to anon, authenticated, service_role;
comment on schema public is 'standard public schema';

-- extension pg_trgm
create extension pg_trgm with schema extensions;

-- default privileges
alter default privileges in schema extensions grant execute on functions to public;
alter default privileges revoke execute on functions from public;

-- type public.article_status
create type public.article_status as enum ('DRAFT', 'PUBLISHED', 'ARCHIVED');
comment on type public.article_status is 'Where an article stands: DRAFT being written, PUBLISHED finished, ARCHIVED kept for the record.';

-- type public.field_error
create type public.field_error as (
  field text,
  message text
);
comment on column public.field_error.field is '@notNull
The name of the field.';
comment on column public.field_error.message is '@notNull
What to do about it.';
comment on type public.field_error is 'One field of the input and what is wrong with it.';

-- type public.mutation_result
create type public.mutation_result as (
  success boolean,
  message text,
  article public.articles,
  errors public.field_error[]
);
comment on column public.mutation_result.article is 'The article, when it was done.';
comment on column public.mutation_result.errors is 'The faults of the input, when it was not.';
comment on column public.mutation_result.message is 'What happened, in a sentence.';
comment on column public.mutation_result.success is '@notNull
Whether it was done.';
comment on type public.mutation_result is 'How a mutation went, for a caller who wants faults as data.';

-- table api.versions
create table api.versions (
  number integer not null,
  status text not null,
  sunset timestamp with time zone,
  successor integer,
  migration_guide text,
  constraint versions_pkey PRIMARY KEY (number),
  constraint versions_check CHECK ((successor > number)),
  constraint versions_number_check CHECK ((number > 0)),
  constraint versions_status_check CHECK ((status = ANY (ARRAY['current'::text, 'supported'::text, 'deprecated'::text, 'retired'::text]))),
  constraint versions_successor_fkey FOREIGN KEY (successor) REFERENCES api.versions(number)
);
CREATE INDEX versions_successor_idx ON api.versions USING btree (successor);
CREATE UNIQUE INDEX versions_one_current ON api.versions USING btree (status) WHERE (status = 'current'::text);
alter table api.versions enable row level security;
create policy select_all on api.versions for select to public using (true);
grant select on api.versions to anon, authenticated, service_role;
comment on column api.versions.migration_guide is 'The address of a page that says how to move.';
comment on column api.versions.number is 'The N of /api/vN.';
comment on column api.versions.status is 'current: recommended. supported: older, still corrected. deprecated: going away. retired: answers 410.';
comment on column api.versions.successor is 'The version to move to.';
comment on column api.versions.sunset is 'When it is, or was, retired; null when that is not decided.';
comment on table api.versions is 'The versions of the conventional interface and how long each is served.';

-- table auth.api_keys
create table auth.api_keys (
  id bigint generated always as identity not null,
  key_hash bytea not null,
  prefix text not null,
  role text not null,
  owner_id bigint,
  name text default ''::text not null,
  created_at timestamp with time zone default now() not null,
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  last_used_at timestamp with time zone,
  constraint api_keys_pkey PRIMARY KEY (id),
  constraint api_keys_key_hash_key UNIQUE (key_hash),
  constraint api_keys_check CHECK ((expires_at > created_at)),
  constraint api_keys_key_hash_check CHECK ((octet_length(key_hash) = 32)),
  constraint api_keys_prefix_check CHECK (((length(prefix) >= 4) AND (length(prefix) <= 12))),
  constraint api_keys_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES public.users(id) ON DELETE CASCADE,
  constraint api_keys_role_fkey FOREIGN KEY (role) REFERENCES auth.roles(name) ON UPDATE CASCADE
);
CREATE INDEX api_keys_owner_id_idx ON auth.api_keys USING btree (owner_id);
CREATE INDEX api_keys_role_idx ON auth.api_keys USING btree (role);
alter table auth.api_keys enable row level security;
comment on column auth.api_keys.expires_at is 'When it ends by itself; null when never.';
comment on column auth.api_keys.owner_id is 'The user it acts for; null when it acts for none.';
comment on column auth.api_keys.prefix is 'The key''s first characters, to tell keys apart in a list.';
comment on table auth.api_keys is 'Keys of programs, as SHA-256 only.';

-- table auth.audit_log
create table auth.audit_log (
  id bigint generated always as identity not null,
  at timestamp with time zone default now() not null,
  event text not null,
  user_id bigint,
  address inet,
  request_id text,
  details jsonb default '{}'::jsonb not null,
  constraint audit_log_pkey PRIMARY KEY (id)
);
CREATE INDEX audit_log_at_idx ON auth.audit_log USING brin (at);
CREATE INDEX audit_log_user_id_at_idx ON auth.audit_log USING btree (user_id, at);
alter table auth.audit_log enable row level security;
comment on column auth.audit_log.details is 'More about it; never a secret.';
comment on column auth.audit_log.event is 'What happened, as noun.verb: session.created, password.changed.';
comment on table auth.audit_log is 'What happened to accounts: sign-ins, failures, changes of passwords, factors and keys.';

-- table auth.credentials
create table auth.credentials (
  user_id bigint not null,
  username text not null,
  password_hash text,
  password_changed_at timestamp with time zone default now() not null,
  disabled_at timestamp with time zone,
  created_at timestamp with time zone default now() not null,
  constraint credentials_pkey PRIMARY KEY (user_id),
  constraint credentials_password_hash_check CHECK ((password_hash ~~ '$%'::text)),
  constraint credentials_username_check CHECK ((btrim(username) <> ''::text)),
  constraint credentials_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX credentials_username_any_case_key ON auth.credentials USING btree (lower(username));
alter table auth.credentials enable row level security;
comment on column auth.credentials.disabled_at is 'Since when the account may not sign in; null when it may.';
comment on column auth.credentials.password_changed_at is 'Sessions and refresh tokens from before this moment have ended.';
comment on column auth.credentials.username is 'The e-mail address unless another was chosen; unique whatever its case.';
comment on index auth.credentials_username_any_case_key is 'This user name is already taken.';
comment on table auth.credentials is 'How a user signs in. A user without a row here cannot.';

-- table auth.federation_replays
create table auth.federation_replays (
  issuer text not null,
  message_id text not null,
  expires_at timestamp with time zone not null,
  constraint federation_replays_pkey PRIMARY KEY (issuer, message_id),
  constraint federation_replays_issuer_fkey FOREIGN KEY (issuer) REFERENCES auth.providers(issuer) ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX federation_replays_expires_at_idx ON auth.federation_replays USING btree (expires_at);
alter table auth.federation_replays enable row level security;
comment on table auth.federation_replays is 'Assertions that were accepted, kept until they expire: each is accepted once.';

-- table auth.federation_states
create table auth.federation_states (
  state_hash bytea not null,
  provider text not null,
  nonce text,
  code_verifier text,
  request_id text,
  redirect_to text,
  created_at timestamp with time zone default now() not null,
  expires_at timestamp with time zone not null,
  constraint federation_states_pkey PRIMARY KEY (state_hash),
  constraint federation_states_state_hash_check CHECK ((octet_length(state_hash) = 32)),
  constraint federation_states_provider_fkey FOREIGN KEY (provider) REFERENCES auth.providers(name) ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX federation_states_expires_at_idx ON auth.federation_states USING btree (expires_at);
CREATE INDEX federation_states_provider_idx ON auth.federation_states USING btree (provider);
alter table auth.federation_states enable row level security;
comment on column auth.federation_states.code_verifier is 'PKCE, RFC 7636.';
comment on column auth.federation_states.request_id is 'The id of a SAML request, which its answer must name.';
comment on table auth.federation_states is 'Sign-ins under way: made when the browser leaves, deleted when it comes back.';

-- table auth.identities
create table auth.identities (
  issuer text not null,
  subject text not null,
  user_id bigint not null,
  created_at timestamp with time zone default now() not null,
  last_used_at timestamp with time zone,
  constraint identities_pkey PRIMARY KEY (issuer, subject),
  constraint identities_issuer_fkey FOREIGN KEY (issuer) REFERENCES auth.providers(issuer) ON UPDATE CASCADE ON DELETE CASCADE,
  constraint identities_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE
);
CREATE INDEX identities_user_id_idx ON auth.identities USING btree (user_id);
alter table auth.identities enable row level security;
comment on table auth.identities is 'Which subject of which issuer is which user.';

-- table auth.login_throttle
create table auth.login_throttle (
  scope text not null,
  key text not null,
  failures integer default 1 not null,
  window_started_at timestamp with time zone default now() not null,
  constraint login_throttle_pkey PRIMARY KEY (scope, key),
  constraint login_throttle_failures_check CHECK ((failures > 0)),
  constraint login_throttle_scope_check CHECK ((scope = ANY (ARRAY['pair'::text, 'address'::text, 'user'::text])))
);
CREATE INDEX login_throttle_window_started_at_idx ON auth.login_throttle USING btree (window_started_at);
alter table auth.login_throttle enable row level security;
comment on column auth.login_throttle.key is 'What is counted: user name and address, address, or user name; names in lower case.';
comment on table auth.login_throttle is 'Failed sign-ins of the current window.';

-- table auth.mfa_backup_codes
create table auth.mfa_backup_codes (
  user_id bigint not null,
  code_hash text not null,
  created_at timestamp with time zone default now() not null,
  used_at timestamp with time zone,
  constraint mfa_backup_codes_pkey PRIMARY KEY (user_id, code_hash),
  constraint mfa_backup_codes_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth.mfa_factors(user_id) ON DELETE CASCADE
);
alter table auth.mfa_backup_codes enable row level security;
comment on table auth.mfa_backup_codes is 'Codes for who has lost the app. Each works once.';

-- table auth.mfa_factors
create table auth.mfa_factors (
  user_id bigint not null,
  state text default 'pending'::text not null,
  secret text not null,
  last_used_step bigint,
  created_at timestamp with time zone default now() not null,
  enabled_at timestamp with time zone,
  constraint mfa_factors_pkey PRIMARY KEY (user_id),
  constraint mfa_factors_enabled CHECK (((state = 'enabled'::text) = (enabled_at IS NOT NULL))),
  constraint mfa_factors_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'enabled'::text]))),
  constraint mfa_factors_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE
);
alter table auth.mfa_factors enable row level security;
comment on column auth.mfa_factors.secret is 'The TOTP secret in base32. It cannot be a hash: codes are computed from it.';
comment on column auth.mfa_factors.state is 'pending until a first code proved that the app has the secret; then enabled.';
comment on table auth.mfa_factors is 'The authenticator app of a user. Not enrolled: no row.';

-- table auth.permissions
create table auth.permissions (
  name text not null,
  description text not null,
  constraint permissions_pkey PRIMARY KEY (name),
  constraint permissions_name_check CHECK ((name ~ '^[a-z][a-z0-9_.:-]*$'::text))
);
alter table auth.permissions enable row level security;
comment on table auth.permissions is 'Words for the claim permissions, such as articles:review.';

-- table auth.providers
create table auth.providers (
  name text not null,
  kind text not null,
  issuer text not null,
  client_id text,
  client_secret text,
  settings jsonb default '{}'::jsonb not null,
  enabled boolean default true not null,
  created_at timestamp with time zone default now() not null,
  constraint providers_pkey PRIMARY KEY (name),
  constraint providers_issuer_key UNIQUE (issuer),
  constraint providers_client CHECK (((kind = 'saml'::text) OR (client_id IS NOT NULL))),
  constraint providers_kind_check CHECK ((kind = ANY (ARRAY['oidc'::text, 'oauth2'::text, 'saml'::text]))),
  constraint providers_name_check CHECK ((name ~ '^[a-z][a-z0-9-]*$'::text)),
  constraint providers_settings_check CHECK ((jsonb_typeof(settings) = 'object'::text))
);
alter table auth.providers enable row level security;
comment on column auth.providers.issuer is 'What the provider calls itself: compared exactly with what its answers say.';
comment on table auth.providers is 'Identity providers that users may sign in through.';

-- table auth.refresh_tokens
create table auth.refresh_tokens (
  token_hash bytea not null,
  family_id uuid not null,
  user_id bigint not null,
  issued_at timestamp with time zone default now() not null,
  expires_at timestamp with time zone not null,
  rotated_at timestamp with time zone,
  revoked_at timestamp with time zone,
  idempotency_key_hash bytea,
  sealed_answer bytea,
  sealed_until timestamp with time zone,
  constraint refresh_tokens_pkey PRIMARY KEY (token_hash),
  constraint refresh_tokens_check CHECK ((expires_at > issued_at)),
  constraint refresh_tokens_idempotency_key_hash_check CHECK ((octet_length(idempotency_key_hash) = 32)),
  constraint refresh_tokens_retry CHECK (((num_nulls(idempotency_key_hash, sealed_answer, sealed_until) = ANY (ARRAY[0, 3])) AND ((sealed_answer IS NULL) OR (rotated_at IS NOT NULL)))),
  constraint refresh_tokens_token_hash_check CHECK ((octet_length(token_hash) = 32)),
  constraint refresh_tokens_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE
);
CREATE INDEX refresh_tokens_expires_at_idx ON auth.refresh_tokens USING btree (expires_at);
CREATE INDEX refresh_tokens_family_id_idx ON auth.refresh_tokens USING btree (family_id);
CREATE INDEX refresh_tokens_user_id_idx ON auth.refresh_tokens USING btree (user_id);
alter table auth.refresh_tokens enable row level security;
comment on column auth.refresh_tokens.revoked_at is 'When it was ended by logout, or with its family.';
comment on column auth.refresh_tokens.rotated_at is 'When it was exchanged for its successor; it is spent since.';
comment on column auth.refresh_tokens.sealed_answer is 'The pair it was exchanged for, encrypted with a key that only the bearer of this token can derive.';
comment on column auth.refresh_tokens.sealed_until is 'Until when the same Idempotency-Key is given the same pair.';
comment on table auth.refresh_tokens is 'Refresh tokens, as SHA-256 only, kept until they expire so that a reused one is known.';

-- table auth.role_permissions
create table auth.role_permissions (
  role text not null,
  permission text not null,
  constraint role_permissions_pkey PRIMARY KEY (role, permission),
  constraint role_permissions_permission_fkey FOREIGN KEY (permission) REFERENCES auth.permissions(name) ON UPDATE CASCADE ON DELETE CASCADE,
  constraint role_permissions_role_fkey FOREIGN KEY (role) REFERENCES auth.roles(name) ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX role_permissions_permission_idx ON auth.role_permissions USING btree (permission);
alter table auth.role_permissions enable row level security;
comment on table auth.role_permissions is 'What everybody in a role may do.';

-- table auth.roles
create table auth.roles (
  name text not null,
  description text not null,
  assignable boolean default false not null,
  constraint roles_pkey PRIMARY KEY (name)
);
alter table auth.roles enable row level security;
comment on table auth.roles is 'The database roles that an API key may act in and, where assignable, a user.';

-- table auth.sessions
create table auth.sessions (
  id_hash bytea not null,
  user_id bigint not null,
  created_at timestamp with time zone default now() not null,
  last_used_at timestamp with time zone default now() not null,
  idle_expires_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  address inet,
  user_agent text,
  constraint sessions_pkey PRIMARY KEY (id_hash),
  constraint sessions_user_id_key UNIQUE (user_id),
  constraint sessions_check CHECK ((expires_at > created_at)),
  constraint sessions_id_hash_check CHECK ((octet_length(id_hash) = 32)),
  constraint sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE
);
CREATE INDEX sessions_least_idx ON auth.sessions USING btree (LEAST(idle_expires_at, expires_at));
alter table auth.sessions enable row level security;
comment on column auth.sessions.created_at is 'When the user signed in.';
comment on column auth.sessions.expires_at is 'The end whatever happens.';
comment on column auth.sessions.idle_expires_at is 'The end when nothing happens; each request moves it.';
comment on table auth.sessions is 'Browsers that are signed in by cookie.';

-- table auth.user_permissions
create table auth.user_permissions (
  user_id bigint not null,
  permission text not null,
  granted_at timestamp with time zone default now() not null,
  constraint user_permissions_pkey PRIMARY KEY (user_id, permission),
  constraint user_permissions_permission_fkey FOREIGN KEY (permission) REFERENCES auth.permissions(name) ON UPDATE CASCADE ON DELETE CASCADE,
  constraint user_permissions_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE
);
CREATE INDEX user_permissions_permission_idx ON auth.user_permissions USING btree (permission);
alter table auth.user_permissions enable row level security;
comment on table auth.user_permissions is 'What one user may do beyond the role.';

-- table auth.user_roles
create table auth.user_roles (
  user_id bigint not null,
  role text not null,
  granted_at timestamp with time zone default now() not null,
  constraint user_roles_pkey PRIMARY KEY (user_id),
  constraint user_roles_role_fkey FOREIGN KEY (role) REFERENCES auth.roles(name) ON UPDATE CASCADE,
  constraint user_roles_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE
);
CREATE INDEX user_roles_role_idx ON auth.user_roles USING btree (role);
alter table auth.user_roles enable row level security;
comment on table auth.user_roles is 'Users in another role than authenticated. One each: a token names one role.';

-- table public.article_translations
create table public.article_translations (
  article_id bigint not null,
  language text not null,
  title text not null,
  created_at timestamp with time zone default now() not null,
  updated_at timestamp with time zone,
  constraint article_translations_pkey PRIMARY KEY (article_id, language),
  constraint article_translations_language_format CHECK ((language ~ '^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$'::text)),
  constraint article_translations_title_length CHECK ((length(title) >= 5)),
  constraint article_translations_article_id_fkey FOREIGN KEY (article_id) REFERENCES public.articles(id) ON DELETE CASCADE
);
CREATE TRIGGER _100_timestamps BEFORE UPDATE ON public.article_translations FOR EACH ROW EXECUTE FUNCTION private.tg__timestamps();
alter table public.article_translations enable row level security;
alter table public.article_translations replica identity full;
create policy admin_all on public.article_translations for all to admin using (true) with check (true);
create policy select_all on public.article_translations for select to public using (true);
create policy write_own on public.article_translations for all to authenticated using ((EXISTS ( SELECT
   FROM public.articles
  WHERE ((articles.id = article_translations.article_id) AND (articles.author_id = ( SELECT auth.uid() AS uid))))));
grant delete, insert (article_id, language, title), select, update (title) on public.article_translations to authenticated;
grant delete, insert, select, update on public.article_translations to service_role;
grant select on public.article_translations to anon;
comment on column public.article_translations.article_id is 'The article.';
comment on column public.article_translations.created_at is 'When it was created.';
comment on column public.article_translations.language is 'A language tag such as de or pt-BR.';
comment on column public.article_translations.title is 'The title in that language, at least 5 characters.';
comment on column public.article_translations.updated_at is 'When it was last changed; null when it never was.';
comment on constraint article_translations_article_id_fkey on public.article_translations is 'The article must exist.';
comment on constraint article_translations_language_format on public.article_translations is 'Give a language tag such as de or pt-BR.';
comment on constraint article_translations_pkey on public.article_translations is 'This article has a title in that language already; change that one.';
comment on constraint article_translations_title_length on public.article_translations is 'Give a title of at least 5 characters.';
comment on table public.article_translations is 'The title of an article in another language.';

-- table public.articles
create table public.articles (
  id bigint generated by default as identity not null,
  title text not null,
  content text not null,
  summary text,
  status public.article_status default 'DRAFT'::public.article_status not null,
  author_id bigint default auth.uid() not null,
  tags text[] default '{}'::text[] not null,
  created_at timestamp with time zone default now() not null,
  updated_at timestamp with time zone,
  constraint articles_pkey PRIMARY KEY (id),
  constraint articles_tags_length CHECK ((octet_length(array_to_string(tags, ''::text)) <= 2000)),
  constraint articles_tags_plain CHECK (
CASE
    WHEN (COALESCE(array_ndims(tags), 1) = 1) THEN (array_position(tags, NULL::text) IS NULL)
    ELSE false
END),
  constraint articles_title_length CHECK ((length(title) >= 5)),
  constraint articles_author_id_fkey FOREIGN KEY (author_id) REFERENCES public.users(id) ON DELETE CASCADE
);
CREATE INDEX articles_document ON public.articles USING gin (private.article_document(title, tags, content));
CREATE INDEX articles_newest ON public.articles USING btree (created_at DESC, id DESC);
CREATE INDEX articles_newest_of_author ON public.articles USING btree (author_id, created_at DESC, id DESC);
CREATE INDEX articles_newest_of_status ON public.articles USING btree (status, created_at DESC, id DESC);
CREATE INDEX articles_tags ON public.articles USING gin (tags);
CREATE INDEX articles_text ON public.articles USING gin (private.article_text(title, tags, content) extensions.gin_trgm_ops);
CREATE TRIGGER _100_timestamps BEFORE UPDATE ON public.articles FOR EACH ROW EXECUTE FUNCTION private.tg__timestamps();
CREATE TRIGGER _500_event AFTER INSERT OR UPDATE ON public.articles FOR EACH ROW EXECUTE FUNCTION private.tg__event();
alter table public.articles enable row level security;
alter table public.articles replica identity full;
create policy admin_all on public.articles for all to admin using (true) with check (true);
create policy delete_own on public.articles for delete to authenticated using ((author_id = ( SELECT auth.uid() AS uid)));
create policy insert_own on public.articles for insert to authenticated with check ((author_id = ( SELECT auth.uid() AS uid)));
create policy select_all on public.articles for select to public using (true);
create policy update_own on public.articles for update to authenticated using ((author_id = ( SELECT auth.uid() AS uid)));
grant delete, insert (content, status, summary, tags, title), select, update (content, status, summary, tags, title) on public.articles to authenticated;
grant delete, insert, select, update on public.articles to service_role;
grant select on public.articles to anon;
comment on column public.articles.author_id is 'The user who wrote it.';
comment on column public.articles.content is 'The text itself.';
comment on column public.articles.created_at is 'When it was created.';
comment on column public.articles.id is 'Assigned by the service, increasing.';
comment on column public.articles.status is '@filterable
Where the article stands.';
comment on column public.articles.summary is '@behavior -attribute:select
The author''s own summary; null when there is none.';
comment on column public.articles.tags is 'Words to find it by.';
comment on column public.articles.title is '@behavior -attribute:select
At least 5 characters.';
comment on column public.articles.updated_at is 'When it was last changed; null when it never was.';
comment on constraint articles_author_id_fkey on public.articles is 'The author must be a user who exists.';
comment on constraint articles_tags_length on public.articles is 'Use fewer or shorter tags: 2,000 bytes in all.';
comment on constraint articles_tags_plain on public.articles is 'Give tags as one list of words, none of them null.';
comment on constraint articles_title_length on public.articles is 'Give a title of at least 5 characters.';
comment on table public.articles is '@connection
@subscription onArticleCreated on:insert notNull
@subscription onArticleUpdated on:update by:id?
A text of one author.';

-- table public.comments
create table public.comments (
  id bigint generated by default as identity not null,
  article_id bigint not null,
  author_id bigint default auth.uid() not null,
  content text not null,
  created_at timestamp with time zone default now() not null,
  updated_at timestamp with time zone,
  constraint comments_pkey PRIMARY KEY (id),
  constraint comments_content_present CHECK ((btrim(content) <> ''::text)),
  constraint comments_article_id_fkey FOREIGN KEY (article_id) REFERENCES public.articles(id) ON DELETE CASCADE,
  constraint comments_author_id_fkey FOREIGN KEY (author_id) REFERENCES public.users(id) ON DELETE CASCADE
);
CREATE INDEX comments_of_article ON public.comments USING btree (article_id, id);
CREATE INDEX comments_of_author ON public.comments USING btree (author_id);
CREATE TRIGGER _100_timestamps BEFORE UPDATE ON public.comments FOR EACH ROW EXECUTE FUNCTION private.tg__timestamps();
CREATE TRIGGER _500_event AFTER INSERT ON public.comments FOR EACH ROW EXECUTE FUNCTION private.tg__event('article_id');
alter table public.comments enable row level security;
alter table public.comments replica identity full;
create policy admin_all on public.comments for all to admin using (true) with check (true);
create policy delete_own on public.comments for delete to authenticated using ((author_id = ( SELECT auth.uid() AS uid)));
create policy insert_own on public.comments for insert to authenticated with check ((author_id = ( SELECT auth.uid() AS uid)));
create policy select_all on public.comments for select to public using (true);
create policy update_own on public.comments for update to authenticated using ((author_id = ( SELECT auth.uid() AS uid)));
grant delete, insert (article_id, content), select, update (content) on public.comments to authenticated;
grant delete, insert, select, update on public.comments to service_role;
grant select on public.comments to anon;
comment on column public.comments.article_id is 'The article it is about.';
comment on column public.comments.author_id is 'The user who wrote it.';
comment on column public.comments.content is 'The text itself; not empty.';
comment on column public.comments.created_at is 'When it was written.';
comment on column public.comments.id is 'Assigned by the service, increasing.';
comment on column public.comments.updated_at is 'When it was last changed; null when it never was.';
comment on constraint comments_article_id_fkey on public.comments is 'The article must exist.';
comment on constraint comments_author_id_fkey on public.comments is 'The author must be a user who exists.';
comment on constraint comments_content_present on public.comments is 'Write something: a comment may not be empty.';
comment on table public.comments is '@subscription onCommentAdded on:insert by:article_id notNull
What a user says about an article.';

-- table public.users
create table public.users (
  id bigint generated by default as identity not null,
  name text not null,
  email text not null,
  age integer,
  avatar text,
  created_at timestamp with time zone default now() not null,
  updated_at timestamp with time zone default now() not null,
  constraint users_pkey PRIMARY KEY (id),
  constraint users_email_key UNIQUE (email),
  constraint users_age_range CHECK (((age >= 0) AND (age <= 150))),
  constraint users_avatar_format CHECK (((avatar ~* '^https?://'::text) AND (length(avatar) <= 2000))),
  constraint users_email_format CHECK (((email ~ '^[^@\s]+@[^@\s]+\.[^@\s]+$'::text) AND (length(email) <= 254))),
  constraint users_name_present CHECK ((btrim(name) <> ''::text))
);
CREATE UNIQUE INDEX users_email_any_case_key ON public.users USING btree (lower(email));
CREATE TRIGGER _100_timestamps BEFORE UPDATE ON public.users FOR EACH ROW EXECUTE FUNCTION private.tg__timestamps();
alter table public.users enable row level security;
alter table public.users replica identity full;
create policy admin_all on public.users for all to admin using (true) with check (true);
create policy delete_open on public.users for delete to anon, authenticated using (( SELECT private.users_are_open('delete'::text) AS users_are_open));
create policy delete_self on public.users for delete to authenticated using ((id = ( SELECT auth.uid() AS uid)));
create policy insert_open on public.users for insert to anon, authenticated with check (( SELECT private.users_are_open('insert'::text) AS users_are_open));
create policy select_all on public.users for select to public using (true);
create policy update_open on public.users for update to anon, authenticated using (( SELECT private.users_are_open('update'::text) AS users_are_open));
create policy update_self on public.users for update to authenticated using ((id = ( SELECT auth.uid() AS uid)));
grant delete, insert (age, avatar, email, name), select, update (age, avatar, email, name) on public.users to anon, authenticated;
grant delete, insert, select, update on public.users to service_role;
comment on column public.users.age is 'In years; null when not told.';
comment on column public.users.avatar is 'The address of a picture.';
comment on column public.users.created_at is 'When the user was added.';
comment on column public.users.email is 'Unique among users, whatever its case.';
comment on column public.users.id is 'Assigned by the service, increasing.';
comment on column public.users.name is 'The name others see.';
comment on column public.users.updated_at is 'When the user was last changed; at first, when it was added.';
comment on constraint users_age_range on public.users is 'Give an age between 0 and 150, or none.';
comment on constraint users_avatar_format on public.users is 'Give the http or https address of a picture, or none.';
comment on constraint users_email_format on public.users is 'Give an e-mail address such as name@example.org.';
comment on constraint users_email_key on public.users is 'This e-mail address is already registered.';
comment on constraint users_name_present on public.users is 'Give a name.';
comment on index public.users_email_any_case_key is 'This e-mail address is already registered.';
comment on table public.users is 'A person who writes articles and comments.';

-- function api.field_error(regclass,text)
CREATE OR REPLACE FUNCTION api.field_error(broken_table regclass, broken_constraint text)
 RETURNS public.field_error
 LANGUAGE sql
 STABLE PARALLEL SAFE
 SET search_path TO ''
AS $function$
  select row(attribute.attname, coalesce(obj_description(rule.oid, 'pg_constraint'), rule.conname || ' is violated'))
  from pg_constraint as rule
  left join pg_attribute as attribute on attribute.attrelid = rule.conrelid and attribute.attnum = rule.conkey[1]
  where rule.conrelid = broken_table and rule.conname = broken_constraint;
$function$;
grant execute on function api.field_error(regclass,text) to anon, authenticated, service_role;
comment on function api.field_error(regclass,text) is 'A violated constraint as the field it is about and the sentence of its comment.';

-- function auth.is_admin()
CREATE OR REPLACE FUNCTION auth.is_admin()
 RETURNS boolean
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN pg_has_role((auth.role())::name, 'admin'::name, 'usage'::text);
grant execute on function auth.is_admin() to anon, authenticated, service_role;
comment on function auth.is_admin() is 'Whether the caller acts as admin, or as a role that inherits from admin.';

-- function auth.jwt()
CREATE OR REPLACE FUNCTION auth.jwt()
 RETURNS jsonb
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN (NULLIF(current_setting('request.jwt.claims'::text, true), ''::text))::jsonb;
grant execute on function auth.jwt() to anon, authenticated, service_role;
comment on function auth.jwt() is 'The claims of the caller''s token; null without a token.';

-- function auth.role()
CREATE OR REPLACE FUNCTION auth.role()
 RETURNS text
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN COALESCE(NULLIF(current_setting('role'::text, true), 'none'::text), (SESSION_USER)::text);
grant execute on function auth.role() to anon, authenticated, service_role;
comment on function auth.role() is 'The database role in which the caller acts: anon, authenticated, admin or service_role.';

-- function auth.uid()
CREATE OR REPLACE FUNCTION auth.uid()
 RETURNS bigint
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN ("substring"((auth.jwt() ->> 'sub'::text), '^[1-9][0-9]{0,17}$'::text))::bigint;
grant execute on function auth.uid() to anon, authenticated, service_role;
comment on function auth.uid() is 'The id of the user who calls; null for everybody who is not signed in.';

-- function private.article_document(text,text[],text)
CREATE OR REPLACE FUNCTION private.article_document(title text, tags text[], content text)
 RETURNS tsvector
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE COST 10000
RETURN ((setweight(to_tsvector('simple'::regconfig, title), 'A'::"char") || setweight(to_tsvector('simple'::regconfig, array_to_string(tags, ' '::text)), 'B'::"char")) || setweight(to_tsvector('simple'::regconfig, "left"(content, 200000)), 'C'::"char"));
grant execute on function private.article_document(text,text[],text) to anon, authenticated, service_role;
comment on function private.article_document(text,text[],text) is 'All of an article that search finds whole words in: title before tags before content.';

-- function private.article_text(text,text[],text)
CREATE OR REPLACE FUNCTION private.article_text(title text, tags text[], content text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE COST 1000
RETURN ((((title || '
'::text) || array_to_string(tags, '
'::text)) || '
'::text) || content);
grant execute on function private.article_text(text,text[],text) to anon, authenticated, service_role;
comment on function private.article_text(text,text[],text) is 'All of an article that search finds parts of words in.';

-- function private.containing(text)
CREATE OR REPLACE FUNCTION private.containing(keyword text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (('%'::text || regexp_replace(keyword, '([\\%_])'::text, '\\\1'::text, 'g'::text)) || '%'::text);
grant execute on function private.containing(text) to anon, authenticated, service_role;
comment on function private.containing(text) is 'The pattern for like and ilike that finds the keyword anywhere, whatever signs it has.';

-- function private.tg__event()
CREATE OR REPLACE FUNCTION private.tg__event()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_row jsonb := to_jsonb(case TG_OP when 'DELETE' then OLD else NEW end);
begin
  perform pg_notify('graphql', jsonb_build_object(
    's', TG_TABLE_SCHEMA,
    't', TG_TABLE_NAME,
    'op', lower(TG_OP),
    'k', (select jsonb_object_agg(key, v_row ->> key) from unnest('{id}' || TG_ARGV) as key where v_row ? key)
  )::text);
  return null;
end;
$function$;
comment on function private.tg__event() is 'For each row: tells channel graphql which row changed. Arguments: the columns to send besides id.';

-- function private.tg__log_whole_rows()
CREATE OR REPLACE FUNCTION private.tg__log_whole_rows()
 RETURNS event_trigger
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_table regclass;
begin
  for v_table in
    select class.oid
    from pg_event_trigger_ddl_commands() as command
    join pg_class as class on command.classid = 'pg_class'::regclass and class.oid = command.objid
    where class.relkind in ('r', 'p')
      and class.relpersistence = 'p'
      and not command.in_extension
      and class.relnamespace not in ('auth'::regnamespace, 'api'::regnamespace, 'extensions'::regnamespace)
      and has_schema_privilege('authenticated', class.relnamespace, 'usage')
  loop
    execute format('alter table %s replica identity full', v_table);
  end loop;
end;
$function$;
comment on function private.tg__log_whole_rows() is 'Gives a new table that may be served the replica identity full.';

-- function private.tg__schema_changed()
CREATE OR REPLACE FUNCTION private.tg__schema_changed()
 RETURNS event_trigger
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  if TG_EVENT = 'sql_drop' then
    if not exists (select from pg_event_trigger_dropped_objects() where not is_temporary) then
      return;
    end if;
  elsif not exists (
    select from pg_event_trigger_ddl_commands()
    where schema_name is distinct from 'pg_temp' and command_tag <> 'REFRESH MATERIALIZED VIEW'
  ) then
    return;
  end if;
  notify pgrst, 'reload schema';
end;
$function$;
comment on function private.tg__schema_changed() is 'Tells the engine that the schema has changed.';

-- function private.tg__timestamps()
CREATE OR REPLACE FUNCTION private.tg__timestamps()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  NEW.created_at := OLD.created_at;
  NEW.updated_at := greatest(now(), OLD.updated_at + interval '1 millisecond');
  return NEW;
end;
$function$;
comment on function private.tg__timestamps() is 'Before update: keeps created_at, moves updated_at forward.';

-- function private.users_are_open(text)
CREATE OR REPLACE FUNCTION private.users_are_open(verb text)
 RETURNS boolean
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN CASE verb WHEN 'insert'::text THEN (current_setting('request.interface'::text, true) = ANY (ARRAY['resource'::text, 'graphql'::text])) ELSE ((current_setting('request.interface'::text, true) = 'resource'::text) AND (current_setting('app.users_access'::text, true) = 'open'::text)) END;
grant execute on function private.users_are_open(text) to anon, authenticated;
comment on function private.users_are_open(text) is 'Whether anybody at all may insert, update or delete users in this request.';

-- function public.articles_related_articles(public.articles,integer)
CREATE OR REPLACE FUNCTION public.articles_related_articles(article public.articles, "limit" integer DEFAULT 5)
 RETURNS SETOF public.articles
 LANGUAGE sql
 STABLE PARALLEL SAFE ROWS 5
 SET search_path TO ''
AS $function$
  select other.*
  from public.articles as other
  where other.tags && article.tags and other.id <> article.id
  order by
    cardinality(array(select unnest(other.tags) intersect select unnest(article.tags))) desc,
    other.created_at desc,
    other.id desc
  limit coalesce("limit", 5);
$function$;
grant execute on function public.articles_related_articles(public.articles,integer) to anon, authenticated, service_role;
comment on function public.articles_related_articles(public.articles,integer) is 'Other articles that share a tag with this one, those with the most tags in common first.';

-- function public.articles_summary(public.articles)
CREATE OR REPLACE FUNCTION public.articles_summary(article public.articles)
 RETURNS text
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN COALESCE((article).summary, "left"((article).content, 200));
grant execute on function public.articles_summary(public.articles) to anon, authenticated, service_role;
comment on function public.articles_summary(public.articles) is 'The author''s summary, or else the first 200 characters of the content.';

-- function public.articles_title(public.articles,text)
CREATE OR REPLACE FUNCTION public.articles_title(article public.articles, language text DEFAULT NULL::text)
 RETURNS text
 LANGUAGE sql
 STABLE PARALLEL SAFE
 SET search_path TO ''
AS $function$
  select coalesce(
    (
      select translation.title
      from public.article_translations as translation
      where translation.article_id = article.id and translation.language = articles_title.language
    ),
    article.title
  );
$function$;
grant execute on function public.articles_title(public.articles,text) to anon, authenticated, service_role;
comment on function public.articles_title(public.articles,text) is '@notNull
The title, in the given language (such as de or pt-BR) when there is a translation.';

-- function public.create_article(text,text,text[],public.article_status)
CREATE OR REPLACE FUNCTION public.create_article(title text, content text, tags text[] DEFAULT NULL::text[], status public.article_status DEFAULT 'DRAFT'::public.article_status)
 RETURNS public.mutation_result
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_article public.articles;
  v_result public.mutation_result;
  v_constraint text;
begin
  v_result.success := false;
  if auth.uid() is null then
    v_result.message := 'Login required: sign in to write an article.';
    return v_result;
  end if;

  insert into public.articles (title, content, tags, status)
    values (
      create_article.title,
      create_article.content,
      coalesce(create_article.tags, '{}'),
      coalesce(create_article.status, 'DRAFT')
    )
    returning * into v_article;
  v_result.success := true;
  v_result.message := 'The article was created.';
  v_result.article := v_article;
  return v_result;
exception when check_violation then
  get stacked diagnostics v_constraint = constraint_name;
  v_result.message := 'The article was not created: see errors.';
  v_result.errors := array[api.field_error('public.articles', v_constraint)];
  return v_result;
end;
$function$;
grant execute on function public.create_article(text,text,text[],public.article_status) to anon, authenticated, service_role;
comment on function public.create_article(text,text,text[],public.article_status) is 'Write an article as the user who is signed in. What is wrong with the input comes back in errors.';

-- function public.create_comment(bigint,text)
CREATE OR REPLACE FUNCTION public.create_comment(article_id bigint, content text)
 RETURNS public.comments
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_comment public.comments;
begin
  if auth.uid() is null then
    raise exception 'Sign in to write a comment' using errcode = 'LOGIN';
  end if;
  if not exists (select from public.articles where articles.id = create_comment.article_id) then
    raise exception 'There is no article with that id' using errcode = 'NTFND', detail = 'article_id';
  end if;
  insert into public.comments (article_id, content) values (create_comment.article_id, create_comment.content)
    returning * into v_comment;
  return v_comment;
end;
$function$;
grant execute on function public.create_comment(bigint,text) to anon, authenticated, service_role;
comment on function public.create_comment(bigint,text) is 'Comment on an article, as the user who is signed in.';

-- function public.create_user(text,text,integer)
CREATE OR REPLACE FUNCTION public.create_user(name text, email text, age integer DEFAULT NULL::integer)
 RETURNS public.users
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_user public.users;
begin
  insert into public.users (name, email, age) values (create_user.name, create_user.email, create_user.age)
    returning * into v_user;
  return v_user;
exception when unique_violation then
  raise exception 'This e-mail address is already registered'
    using errcode = 'TAKEN', detail = 'email', hint = 'Sign in with it, or use another address.';
end;
$function$;
grant execute on function public.create_user(text,text,integer) to anon, authenticated, service_role;
comment on function public.create_user(text,text,integer) is 'Add a user. An e-mail address can be registered once.';

-- function public.delete_article(bigint)
CREATE OR REPLACE FUNCTION public.delete_article(id bigint)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  if auth.uid() is null and row_security_active('public.articles') then
    raise exception 'Sign in to delete an article' using errcode = 'LOGIN';
  end if;

  delete from public.articles as article where article.id = delete_article.id;
  if found then
    return true;
  end if;

  if exists (select from public.articles as article where article.id = delete_article.id) then
    raise exception 'Only its author may delete this article' using errcode = 'NOPER';
  end if;
  return false;
end;
$function$;
grant execute on function public.delete_article(bigint) to anon, authenticated, service_role;
comment on function public.delete_article(bigint) is 'Delete an article of yours and its comments. False when there is no such article.';

-- function public.me()
CREATE OR REPLACE FUNCTION public.me()
 RETURNS public.users
 LANGUAGE plpgsql
 STABLE PARALLEL SAFE
 SET search_path TO ''
AS $function$
declare
  v_user public.users;
begin
  select * into v_user from public.users where users.id = auth.uid();
  if not found then
    raise exception 'You are not signed in' using errcode = 'LOGIN', hint = 'Send a valid access token.';
  end if;
  return v_user;
end;
$function$;
grant execute on function public.me() to anon, authenticated, service_role;
comment on function public.me() is '@notNull
The user who is signed in.';

-- function public.publish(public.articles)
CREATE OR REPLACE FUNCTION public.publish(article public.articles)
 RETURNS public.articles
 LANGUAGE sql
 SET search_path TO ''
AS $function$
  select public.publish_article(article.id);
$function$;
grant execute on function public.publish(public.articles) to anon, authenticated, service_role;
comment on function public.publish(public.articles) is '@behavior -*
Give this article the status PUBLISHED.';

-- function public.publish_article(bigint)
CREATE OR REPLACE FUNCTION public.publish_article(id bigint)
 RETURNS public.articles
 LANGUAGE sql
 SET search_path TO ''
AS $function$
  select public.update_article(publish_article.id, status => 'PUBLISHED');
$function$;
grant execute on function public.publish_article(bigint) to anon, authenticated, service_role;
comment on function public.publish_article(bigint) is 'Give an article of yours the status PUBLISHED.';

-- function public.search(text)
CREATE OR REPLACE FUNCTION public.search(keyword text)
 RETURNS SETOF public.articles
 LANGUAGE sql
 STABLE PARALLEL SAFE ROWS 20
BEGIN ATOMIC
 SELECT candidate.article
    FROM ( SELECT article.*::public.articles AS article
            FROM public.articles article
           WHERE ((btrim(search.keyword) <> ''::text) AND (article.id IN ( SELECT part.id
                    FROM public.articles part
                   WHERE (private.article_text(part.title, part.tags, part.content) ~~* private.containing(search.keyword))
                 UNION
                  SELECT word.id
                    FROM public.articles word
                   WHERE ((btrim(search.keyword) ~ '[^[:alnum:]]'::text) AND (private.article_document(word.title, word.tags, word.content) @@ plainto_tsquery('simple'::regconfig, search.keyword))))))
           ORDER BY (article.title ~~* private.containing(search.keyword)) DESC, article.created_at DESC, article.id DESC
          LIMIT 1000) candidate
   ORDER BY ((((((candidate.article).title ~~* private.containing(search.keyword)))::integer)::double precision + extensions.word_similarity(search.keyword, (candidate.article).title)) + ts_rank(private.article_document((candidate.article).title, (candidate.article).tags, (candidate.article).content), plainto_tsquery('simple'::regconfig, search.keyword))) DESC, (candidate.article).created_at DESC, (candidate.article).id DESC;
END;
grant execute on function public.search(text) to anon, authenticated, service_role;
comment on function public.search(text) is 'Articles with the keyword in title, tags or content, the best match first.';

-- function public.update_article(bigint,text,text,text[],public.article_status)
CREATE OR REPLACE FUNCTION public.update_article(id bigint, title text DEFAULT NULL::text, content text DEFAULT NULL::text, tags text[] DEFAULT NULL::text[], status public.article_status DEFAULT NULL::public.article_status)
 RETURNS public.articles
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_article public.articles;
begin
  -- Whom policies do not bind (service_role) needs no account.
  if auth.uid() is null and row_security_active('public.articles') then
    raise exception 'Sign in to change an article' using errcode = 'LOGIN';
  end if;

  update public.articles as article
    set
      title = coalesce(update_article.title, article.title),
      content = coalesce(update_article.content, article.content),
      tags = coalesce(update_article.tags, article.tags),
      status = coalesce(update_article.status, article.status)
    where article.id = update_article.id
    returning * into v_article;
  if found then
    return v_article;
  end if;

  if exists (select from public.articles as article where article.id = update_article.id) then
    raise exception 'Only its author may change this article' using errcode = 'NOPER';
  end if;
  raise exception 'There is no article with that id' using errcode = 'NTFND', detail = 'id';
end;
$function$;
grant execute on function public.update_article(bigint,text,text,text[],public.article_status) to anon, authenticated, service_role;
comment on function public.update_article(bigint,text,text,text[],public.article_status) is 'Change an article of yours. What is left out stays as it is.';

-- event trigger log_whole_rows
create event trigger log_whole_rows on ddl_command_end when tag in ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO') execute function private.tg__log_whole_rows();

-- event trigger schema_changed
create event trigger schema_changed on ddl_command_end execute function private.tg__schema_changed();

-- event trigger schema_dropped
create event trigger schema_dropped on sql_drop execute function private.tg__schema_changed();
