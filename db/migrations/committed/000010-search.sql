--! Previous: sha1:992d3e9f76dfafe087abf4a10ec158297d8f6375
--! Hash: sha1:b0e28abe7a3fe741b9d9d71e2ef3923a893019b5
--! Message: search

--! Included private/article_text.sql
-- Declared immutable for the index. array_to_string is only stable, because of types whose text depends on settings;
-- the text of a text does not.
create or replace function private.article_text(title text, tags text[], content text) returns text
language sql immutable parallel safe cost 1000
return title || e'\n' || array_to_string(tags, e'\n') || e'\n' || content;

grant execute on function private.article_text to anon, authenticated, service_role;
comment on function private.article_text is 'All of an article that search finds parts of words in.';
--! EndIncluded private/article_text.sql
--! Included private/article_document.sql
-- 'simple', not 'english': articles are written in any language, and stemming one spoils the others. A document is
-- limited to 1 MB by Postgres (54000); 200,000 characters always fit. The cost is honest, and keeps the planner from
-- parsing every article where it has the index.
create or replace function private.article_document(title text, tags text[], content text) returns tsvector
language sql immutable parallel safe cost 10000
return setweight(to_tsvector('pg_catalog.simple', title), 'A')
  || setweight(to_tsvector('pg_catalog.simple', array_to_string(tags, ' ')), 'B')
  || setweight(to_tsvector('pg_catalog.simple', left(content, 200000)), 'C');

grant execute on function private.article_document to anon, authenticated, service_role;
comment on function private.article_document is
  'All of an article that search finds whole words in: title before tags before content.';
--! EndIncluded private/article_document.sql
--! Included private/containing.sql
create or replace function private.containing(keyword text) returns text
language sql immutable parallel safe
return '%' || regexp_replace(keyword, '([\\%_])', '\\\1', 'g') || '%';

grant execute on function private.containing to anon, authenticated, service_role;
comment on function private.containing is
  'The pattern for like and ilike that finds the keyword anywhere, whatever signs it has.';
--! EndIncluded private/containing.sql

create index articles_document on public.articles using gin (private.article_document(title, tags, content));
create index articles_text on public.articles
  using gin (private.article_text(title, tags, content) extensions.gin_trgm_ops);

--! Included public/search.sql
-- Parts of words, and languages written without spaces, are found in the text; words that stand apart in the document.
-- Each has its index. Two queries instead of an "or", which would have every hit of the one index checked against the
-- other expression (120 µs to parse a document of 2 kB); and a single word needs the first only.
-- Ranking reads whole articles, so it is done for a thousand at most, those with a hit in the title first.
-- A standard body, because a caller may not name what is in schema private; it returns whole rows ("select article"),
-- because article.* would be frozen to the columns of today.
create or replace function public.search(keyword text) returns setof public.articles
language sql stable parallel safe rows 20
begin atomic
  select candidate.article
  from (
    select article
    from public.articles as article
    where btrim(keyword) <> '' and article.id in (
      select part.id from public.articles as part
      where private.article_text(part.title, part.tags, part.content) ilike private.containing(keyword)
      union
      select word.id from public.articles as word
      where btrim(keyword) ~ '[^[:alnum:]]'
        and private.article_document(word.title, word.tags, word.content) @@ plainto_tsquery('simple', keyword)
    )
    order by article.title ilike private.containing(keyword) desc, article.created_at desc, article.id desc
    limit 1000
  ) as candidate
  order by
    ((candidate.article).title ilike private.containing(keyword))::integer
      + extensions.word_similarity(keyword, (candidate.article).title)
      + ts_rank(
          private.article_document(
            (candidate.article).title, (candidate.article).tags, (candidate.article).content
          ),
          plainto_tsquery('simple', keyword)
        ) desc,
    (candidate.article).created_at desc,
    (candidate.article).id desc;
end;

grant execute on function public.search to anon, authenticated, service_role;
comment on function public.search is 'Articles with the keyword in title, tags or content, the best match first.';
--! EndIncluded public/search.sql
