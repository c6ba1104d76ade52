--! Previous: sha1:54f444b652f507324366a1e03ca6da69dd57548c
--! Hash: sha1:a3a1d80764b437c56f246b36bb6d9357ece29b19
--! Message: functions of rows

-- String bodies: with standard bodies, current releases of Postgres refuse new columns of public.articles that have a default, and generated
-- ones. Their names are resolved as the caller, who has no USAGE on schema private, so what they call is in schema api.
--! Included api/translated_title.sql
-- In schema api, on which callers have USAGE: public.articles_title has a string body, whose names Postgres resolves as the caller.
create or replace function api.translated_title(article_id bigint, language text) returns text
language sql stable parallel safe
begin atomic
  select translation.title
  from public.article_translations as translation
  where translation.article_id = translated_title.article_id and translation.language = translated_title.language;
end;

grant execute on function api.translated_title to anon, authenticated, service_role;
comment on function api.translated_title is 'The title in that language; null without a translation.';
--! EndIncluded api/translated_title.sql
--! Included api/matching_articles.sql
-- In schema api, as api.translated_title. It runs as the caller, so policies hide articles here too.
create or replace function api.matching_articles(keyword text) returns setof bigint
language sql stable parallel safe rows 20
begin atomic
  select article.id
  from public.articles as article
  where btrim(keyword) <> '' and article.id in (
    select found.id from private.articles_containing(keyword) as found (id)
  );
end;

grant execute on function api.matching_articles to anon, authenticated, service_role;
comment on function api.matching_articles is 'The ids of the articles with the keyword that the caller may read.';
--! EndIncluded api/matching_articles.sql
--! Included api/related_articles.sql
-- In schema api, as api.translated_title. It runs as the caller, so policies hide articles here too.
create or replace function api.related_articles(article_id bigint, tags text[], "limit" integer) returns setof bigint
language sql stable parallel safe rows 5
begin atomic
  select other.id
  from public.articles as other
  where other.id in (select found.id from private.articles_sharing(related_articles.tags) as found (id))
    and other.id <> related_articles.article_id
  order by
    cardinality(array(select unnest(other.tags) intersect select unnest(related_articles.tags))) desc,
    other.created_at desc,
    other.id desc
  limit coalesce("limit", 5);
end;

grant execute on function api.related_articles to anon, authenticated, service_role;
comment on function api.related_articles is
  'The ids of other articles with one of the tags, those with the most tags in common first.';
--! EndIncluded api/related_articles.sql
--! Included api/search_articles.sql
-- In schema api, as api.translated_title. It runs as the caller, so policies hide articles here too.
-- Ranking reads whole articles, so at most a thousand are ranked, those with a hit in the title first. word_similarity takes time
-- quadratic in the length (6 s for 100,000 characters), so only the beginnings are compared.
create or replace function api.search_articles(keyword text) returns setof bigint
language sql stable parallel safe rows 20
begin atomic
  select candidate.id
  from (
    select article.id, article.title, article.tags, article.content, article.created_at
    from public.articles as article
    where article.id in (select found.id from api.matching_articles(keyword) as found (id))
    order by article.title ilike private.containing(keyword) desc, article.created_at desc, article.id desc
    limit 1000
  ) as candidate
  order by
    (candidate.title ilike private.containing(keyword))::integer
      + extensions.word_similarity(left(keyword, 200), left(candidate.title, 200))
      + ts_rank(
          private.article_document(candidate.title, candidate.tags, candidate.content),
          plainto_tsquery('simple', left(keyword, 1000))
        ) desc,
    candidate.created_at desc,
    candidate.id desc;
end;

grant execute on function api.search_articles to anon, authenticated, service_role;
comment on function api.search_articles is
  'The ids of the articles with the keyword that the caller may read, the best match first.';
--! EndIncluded api/search_articles.sql
--! Included public/articles_summary.sql
-- Without a setting search_path, which would keep Postgres from inlining it: all names are qualified, and there are no operators.
create or replace function public.articles_summary(article public.articles) returns text as $$
  select coalesce(article.summary, pg_catalog.left(article.content, 200));
$$ language sql stable parallel safe;
grant execute on function public.articles_summary to anon, authenticated, service_role;
comment on function public.articles_summary is
  'The author''s summary, or else the first 200 characters of the content.';
--! EndIncluded public/articles_summary.sql
--! Included public/articles_title.sql
-- An expression without a sub-select is inlined: without a language it costs what reading the column costs. A setting search_path would
-- keep Postgres from inlining it: all names are qualified, and there are no operators.
create or replace function public.articles_title(article public.articles, language text default null) returns text as $$
  select case
    when language is null then article.title
    else coalesce(api.translated_title(article.id, language), article.title)
  end;
$$ language sql stable parallel safe;
grant execute on function public.articles_title to anon, authenticated, service_role;
comment on function public.articles_title is
  e'@notNull\nThe title, in the given language (such as de or pt-BR) when there is a translation.';
--! EndIncluded public/articles_title.sql
--! Included public/articles_related_articles.sql
create or replace function public.articles_related_articles(article public.articles, "limit" integer default 5)
returns setof public.articles as $$
  select other.*
  from api.related_articles(article.id, article.tags, "limit") with ordinality as found (id, position)
  join public.articles as other on other.id = found.id
  order by found.position;
$$ language sql stable parallel safe rows 5 set search_path = '';
grant execute on function public.articles_related_articles to anon, authenticated, service_role;
comment on function public.articles_related_articles is
  'Other articles that share a tag with this one, those with the most tags in common first.';
--! EndIncluded public/articles_related_articles.sql
--! Included public/articles_matching.sql
create or replace function public.articles_matching(keyword text) returns setof public.articles as $$
  select article.*
  from public.articles as article
  where article.id in (select found.id from api.matching_articles(keyword) as found (id));
$$ language sql stable parallel safe rows 20 set search_path = '';
grant execute on function public.articles_matching to anon, authenticated, service_role;
comment on function public.articles_matching is
  e'@behavior -*\n@filter\nArticles with the keyword in title, tags or content.';
--! EndIncluded public/articles_matching.sql
--! Included public/search.sql
create or replace function public.search(keyword text) returns setof public.articles as $$
  select article.*
  from api.search_articles(keyword) with ordinality as found (id, position)
  join public.articles as article on article.id = found.id
  order by found.position;
$$ language sql stable parallel safe rows 20 set search_path = '';
grant execute on function public.search to anon, authenticated, service_role;
comment on function public.search is
  'Articles with the keyword in title, tags or content, the best match first.';
--! EndIncluded public/search.sql
drop function if exists private.translated_title;
