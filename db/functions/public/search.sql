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
comment on function public.search is
  e'@filter\nArticles with the keyword in title, tags or content, the best match first.';
