--! Previous: sha1:d97d39d9fb00c3840b53714339ad7155f98c530d
--! Hash: sha1:f67789f335e2bb522c0674ba1ed7ae30d88e07b3
--! Message: search

create extension if not exists pg_trgm with schema extensions;

--! Included private/article_text.sql
-- Declared immutable for the index. array_to_string is only stable, because the text of some types depends on settings; that of text
-- does not.
create or replace function private.article_text(title text, tags text[], content text) returns text
language sql immutable parallel safe cost 1000
return title || e'\n' || array_to_string(tags, e'\n') || e'\n' || content;

grant execute on function private.article_text to anon, authenticated, service_role;
comment on function private.article_text is 'The text of an article for substring search.';
--! EndIncluded private/article_text.sql
--! Included private/article_document.sql
-- 'simple', not 'english': articles are written in any language, and stemming for one spoils the others. Postgres limits a document to
-- 1 MB (54000); 1,000 characters of the title and 200,000 of the content always fit. The cost is realistic, and makes the planner use
-- the index instead of parsing every article.
create or replace function private.article_document(title text, tags text[], content text) returns tsvector
language sql immutable parallel safe cost 10000
return setweight(to_tsvector('pg_catalog.simple', left(title, 1000)), 'A')
  || setweight(to_tsvector('pg_catalog.simple', array_to_string(tags, ' ')), 'B')
  || setweight(to_tsvector('pg_catalog.simple', left(content, 200000)), 'C');

grant execute on function private.article_document to anon, authenticated, service_role;
comment on function private.article_document is
  'The text of an article for full-text search: title before tags before content.';
--! EndIncluded private/article_document.sql
--! Included private/containing.sql
create or replace function private.containing(keyword text) returns text
language sql immutable parallel safe
return '%' || regexp_replace(left(keyword, 1000), '([\\%_])', '\\\1', 'g') || '%';

grant execute on function private.containing to anon, authenticated, service_role;
comment on function private.containing is
  'The pattern for like and ilike that finds the keyword (its first 1,000 characters) anywhere; wildcards are escaped.';
--! EndIncluded private/containing.sql

create index articles_document on public.articles using gin (private.article_document(title, tags, content));
create index articles_text on public.articles
  using gin (private.article_text(title, tags, content) extensions.gin_trgm_ops);

--! Included public/articles_matching.sql
-- Substrings, and languages written without spaces, are found in private.article_text; separate words in private.article_document.
-- Each has its index. A union instead of "or", which would check every hit of one index against the other expression (120 µs to
-- parse a document of 2 kB); a single word needs the first only.
-- The keyword is cut: one of a million words exceeds a limit of Postgres (54000), and cannot be cancelled before that.
-- A standard body, because callers have no USAGE on schema private; it selects whole rows ("select article"), because article.* would
-- be frozen to today's columns.
create or replace function public.articles_matching(keyword text) returns setof public.articles
language sql stable parallel safe rows 20
begin atomic
  select article
  from public.articles as article
  where btrim(keyword) <> '' and article.id in (
    select part.id from public.articles as part
    where private.article_text(part.title, part.tags, part.content) ilike private.containing(keyword)
    union
    select word.id from public.articles as word
    where btrim(keyword) ~ '[^[:alnum:]]'
      and private.article_document(word.title, word.tags, word.content)
        @@ plainto_tsquery('simple', left(keyword, 1000))
  );
end;

grant execute on function public.articles_matching to anon, authenticated, service_role;
comment on function public.articles_matching is
  e'@behavior -*\n@filter\nArticles with the keyword in title, tags or content.';
--! EndIncluded public/articles_matching.sql
--! Included public/search.sql
-- Ranking reads whole articles, so at most a thousand are ranked, those with a hit in the title first. word_similarity takes time
-- quadratic in the length (6 s for 100,000 characters), so only the beginnings are compared.
create or replace function public.search(keyword text) returns setof public.articles
language sql stable parallel safe rows 20
begin atomic
  select candidate.article
  from (
    select article
    from public.articles_matching(keyword) as article
    order by article.title ilike private.containing(keyword) desc, article.created_at desc, article.id desc
    limit 1000
  ) as candidate
  order by
    ((candidate.article).title ilike private.containing(keyword))::integer
      + extensions.word_similarity(left(keyword, 200), left((candidate.article).title, 200))
      + ts_rank(
          private.article_document(
            (candidate.article).title, (candidate.article).tags, (candidate.article).content
          ),
          plainto_tsquery('simple', left(keyword, 1000))
        ) desc,
    (candidate.article).created_at desc,
    (candidate.article).id desc;
end;

grant execute on function public.search to anon, authenticated, service_role;
comment on function public.search is
  'Articles with the keyword in title, tags or content, the best match first.';
--! EndIncluded public/search.sql
