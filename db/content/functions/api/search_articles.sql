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
