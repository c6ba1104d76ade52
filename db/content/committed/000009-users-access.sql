--! Previous: sha1:35c7bdaf9a54b85828f72305a2c6799e9eed7cb7
--! Hash: sha1:6310aa5a426898b6ce68bb76a475489cb265e9be
--! Message: users access

-- Articles that are not published are read by their author and administrators; what belongs to an article is read with it.
drop policy if exists select_all on public.articles;
create policy select_published on public.articles for select using (status = 'PUBLISHED');
create policy select_own on public.articles for select to authenticated using (author_id = (select auth.uid()));

drop policy if exists select_all on public.article_translations;
create policy select_of_article on public.article_translations for select
  using (exists (select from public.articles where articles.id = article_id));

drop policy if exists select_all on public.comments;
create policy select_of_article on public.comments for select
  using (exists (select from public.articles where articles.id = article_id));
drop policy if exists insert_own on public.comments;
create policy insert_own on public.comments for insert to authenticated with check (
  author_id = (select auth.uid()) and exists (select from public.articles where articles.id = article_id)
);

-- Anonymous callers read the authors of what they may read, without the address. And the user they add, whose row the insert returns:
-- created_at is the time of its transaction.
drop policy if exists select_all on public.users;
create policy select_signed_in on public.users for select to authenticated using (true);
create policy select_authors on public.users for select to anon using (
  exists (select from public.articles where articles.author_id = users.id)
  or exists (select from public.comments where comments.author_id = users.id)
  or created_at = now()
);
revoke select on public.users from anon;
grant select (id, name, age, avatar, created_at, updated_at) on public.users to anon;
comment on table public.users is
  '@root user
@list
@signUp
@behavior -resource:update -resource:delete
A person who writes articles and comments.';
comment on column public.users.email is e'@personal\nUnique among users, whatever its case.';

-- Who may read a row may read its author and its article.
comment on constraint articles_author_id_fkey on public.articles is e'@notNull\nThe author must be a user who exists.';
comment on constraint article_translations_article_id_fkey on public.article_translations is
  e'@notNull\nThe article must exist.';
comment on constraint comments_article_id_fkey on public.comments is e'@notNull\nThe article must exist.';
comment on constraint comments_author_id_fkey on public.comments is
  e'@notNull\n@behavior -manyRelation:resource:list\nThe author must be a user who exists.';

--! Included auth/users_access.sql
create or replace function auth.users_access() returns text
language sql stable
return case
  when to_regclass('public.users') is null then null
  when exists (
    select from pg_catalog.pg_policies
    where schemaname = 'public' and tablename = 'users' and policyname = 'select_all'
  ) then 'open'
  else 'owner'
end;

comment on function auth.users_access is
  'The value of USERS_ACCESS that policies and privileges implement; null without the table of users.';
--! EndIncluded auth/users_access.sql
--! Included auth/set_users_access.sql
-- What is open beyond the rules of the tables is exactly what is created here, so that without it the rules are strict: a select policy
-- with "using (true)" decides alone, costs nothing per row and keeps every index usable. A table that a project has dropped is skipped.
create or replace function auth.set_users_access(access text) returns boolean as $$
declare
  v_table text;
begin
  if access is null or access not in ('open', 'owner') then
    raise exception 'USERS_ACCESS is open or owner' using errcode = '22023';
  end if;
  if auth.users_access() is not distinct from access or auth.users_access() is null then
    return false;
  end if;
  -- Several processes may start at the same time.
  perform pg_advisory_xact_lock(hashtextextended('auth.set_users_access', 0));

  foreach v_table in array '{users,articles,article_translations,comments}'::text[] loop
    continue when to_regclass('public.' || v_table) is null;
    execute format('drop policy if exists select_all on public.%I', v_table);
    if access = 'open' then
      execute format('create policy select_all on public.%I for select using (true)', v_table);
    end if;
  end loop;
  if to_regclass('public.comments') is not null then
    drop policy if exists insert_open on public.comments;
    if access = 'open' then
      create policy insert_open on public.comments for insert to authenticated
        with check (author_id = (select auth.uid()));
    end if;
  end if;
  if access = 'open' then
    grant select (email) on public.users to anon;
  else
    revoke select (email) on public.users from anon;
  end if;
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.set_users_access is
  'Makes the policies and privileges those of USERS_ACCESS; returns whether they were others. Each start of the service calls it.';
--! EndIncluded auth/set_users_access.sql
--! Included private/articles_containing.sql
-- As the owner, because Postgres uses the indexes of substrings, documents and tags only where no policy has to be checked before: their
-- operators are not leakproof. Callers receive the ids in queries that apply the policies to the articles themselves.
-- Substrings, and languages written without spaces, are found in private.article_text; separate words in private.article_document.
-- Each has its index. A union instead of "or", which would check every hit of one index against the other expression (120 µs to
-- parse a document of 2 kB); a single word needs the first only.
-- The keyword is cut: one of a million words exceeds a limit of Postgres (54000), and cannot be cancelled before that.
create or replace function private.articles_containing(keyword text) returns setof bigint as $$
  select part.id from public.articles as part
  where private.article_text(part.title, part.tags, part.content) ilike private.containing(keyword)
  union
  select word.id from public.articles as word
  where btrim(keyword) ~ '[^[:alnum:]]'
    and private.article_document(word.title, word.tags, word.content)
      @@ plainto_tsquery('simple', left(keyword, 1000));
$$ language sql stable parallel safe rows 20 security definer set search_path = '';
grant execute on function private.articles_containing to anon, authenticated, service_role;
comment on function private.articles_containing is 'The ids of all articles with the keyword, whoever may read them.';
--! EndIncluded private/articles_containing.sql
--! Included private/articles_sharing.sql
-- As the owner, for the same reason as private.articles_containing.
create or replace function private.articles_sharing(tags text[]) returns setof bigint as $$
  select articles.id from public.articles where articles.tags && articles_sharing.tags;
$$ language sql stable parallel safe rows 20 security definer set search_path = '';
grant execute on function private.articles_sharing to anon, authenticated, service_role;
comment on function private.articles_sharing is 'The ids of all articles with one of the tags, whoever may read them.';
--! EndIncluded private/articles_sharing.sql
--! Included public/articles_matching.sql
-- A standard body, because callers have no USAGE on schema private; it selects whole rows ("select article"), because article.* would
-- be frozen to today's columns.
create or replace function public.articles_matching(keyword text) returns setof public.articles
language sql stable parallel safe rows 20
begin atomic
  select article
  from public.articles as article
  where btrim(keyword) <> '' and article.id in (
    select found.id from private.articles_containing(keyword) as found (id)
  );
end;

grant execute on function public.articles_matching to anon, authenticated, service_role;
comment on function public.articles_matching is
  e'@behavior -*\n@filter\nArticles with the keyword in title, tags or content.';
--! EndIncluded public/articles_matching.sql
--! Included public/articles_related_articles.sql
-- A standard body, because callers have no USAGE on schema private; it selects whole rows ("select other"), because other.* would be
-- frozen to today's columns.
create or replace function public.articles_related_articles(article public.articles, "limit" integer default 5)
returns setof public.articles
language sql stable parallel safe rows 5
begin atomic
  select other
  from public.articles as other
  where other.id in (select found.id from private.articles_sharing(article.tags) as found (id)) and other.id <> article.id
  order by
    cardinality(array(select unnest(other.tags) intersect select unnest(article.tags))) desc,
    other.created_at desc,
    other.id desc
  limit coalesce("limit", 5);
end;

grant execute on function public.articles_related_articles to anon, authenticated, service_role;
comment on function public.articles_related_articles is
  'Other articles that share a tag with this one, those with the most tags in common first.';
--! EndIncluded public/articles_related_articles.sql
--! Included public/me.sql
create or replace function public.me() returns public.users as $$
declare
  v_user public.users;
begin
  -- Not for anonymous callers, who may not read the address.
  if auth.uid() is not null then
    select * into v_user from public.users where users.id = auth.uid();
  end if;
  if v_user.id is null then
    raise exception 'You are not signed in' using errcode = 'LOGIN', hint = 'Send a valid access token.';
  end if;
  return v_user;
end;
$$ language plpgsql stable parallel safe set search_path = '';
grant execute on function public.me to anon, authenticated, service_role;
comment on function public.me is e'@notNull\nThe user who is signed in.';
--! EndIncluded public/me.sql
--! Included public/create_user.sql
-- Runs as the caller: policy insert_open decides who may.
create or replace function public.create_user(name text, email text, age integer default null)
returns public.users as $$
declare
  v_user public.users;
begin
  -- Without the address, which anonymous callers may not read.
  insert into public.users (name, email, age) values (create_user.name, create_user.email, create_user.age)
    returning users.id, users.name, users.age, users.avatar, users.created_at, users.updated_at
    into v_user.id, v_user.name, v_user.age, v_user.avatar, v_user.created_at, v_user.updated_at;
  v_user.email := create_user.email;
  return v_user;
exception when unique_violation then
  raise exception 'This e-mail address is already registered'
    using errcode = 'TAKEN', detail = 'email', hint = 'Sign in with it, or use another address.';
end;
$$ language plpgsql volatile set search_path = '';
grant execute on function public.create_user to anon, authenticated, service_role;
comment on function public.create_user is e'@signUp\nAdd a user. An e-mail address can be registered once.';
--! EndIncluded public/create_user.sql
