--! Previous: sha1:a59439b4a391f062a2a409b65f0c45915e5958e4
--! Hash: sha1:dcc094fa1044c515df810f29f7ac4da3d4db259e
--! Message: long texts

--! split: 1-current.sql
-- No text that a client may send is beyond what its indexes and its search can take; and who filters by a keyword and by
-- something else finds all, not what is among the thousand best matches.

--! Included private/containing.sql
create or replace function private.containing(keyword text) returns text
language sql immutable parallel safe
return '%' || regexp_replace(left(keyword, 1000), '([\\%_])', '\\\1', 'g') || '%';

grant execute on function private.containing to anon, authenticated, service_role;
comment on function private.containing is
  'The pattern for like and ilike that finds the keyword, or its first 1,000 characters, anywhere, whatever signs it has.';
--! EndIncluded private/containing.sql
--! Included private/article_document.sql
-- 'simple', not 'english': articles are written in any language, and stemming one spoils the others. A document is
-- limited to 1 MB by Postgres (54000); 1,000 characters of the title and 200,000 of the content always fit. The cost is
-- honest, and keeps the planner from parsing every article where it has the index.
create or replace function private.article_document(title text, tags text[], content text) returns tsvector
language sql immutable parallel safe cost 10000
return setweight(to_tsvector('pg_catalog.simple', left(title, 1000)), 'A')
  || setweight(to_tsvector('pg_catalog.simple', array_to_string(tags, ' ')), 'B')
  || setweight(to_tsvector('pg_catalog.simple', left(content, 200000)), 'C');

grant execute on function private.article_document to anon, authenticated, service_role;
comment on function private.article_document is
  'All of an article that search finds whole words in: title before tags before content.';
--! EndIncluded private/article_document.sql
--! Included public/articles_matching.sql
-- Parts of words, and languages written without spaces, are found in the text; words that stand apart in the document.
-- Each has its index. Two queries instead of an "or", which would have every hit of the one index checked against the
-- other expression (120 µs to parse a document of 2 kB); and a single word needs the first only.
-- A keyword is cut: one of a million words is beyond Postgres (54000), and cannot be cancelled before that.
-- A standard body, because a caller may not name what is in schema private; it returns whole rows ("select article"),
-- because article.* would be frozen to the columns of today.
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
-- Ranking reads whole articles, so it is done for a thousand at most, those with a hit in the title first. How similar
-- two texts are is found in the square of their lengths, 6 s for 100,000 characters: their beginnings tell enough.
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

-- Ten parts are more than any tag has, and a longer one is no key of an index (54000).
alter table public.article_translations drop constraint article_translations_language_format;
alter table public.article_translations add constraint article_translations_language_format
  check (language ~ '^[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,10}$');
comment on constraint article_translations_language_format on public.article_translations is
  'Give a language tag such as de or pt-BR.';
