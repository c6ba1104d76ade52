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
