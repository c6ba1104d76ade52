create or replace function public.publish_article(id bigint) returns public.articles as $$
  select public.update_article(publish_article.id, status => 'PUBLISHED');
$$ language sql volatile set search_path = '';
grant execute on function public.publish_article to anon, authenticated, service_role;
comment on function public.publish_article is 'Give an article of yours the status PUBLISHED.';
