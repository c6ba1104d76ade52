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
