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
