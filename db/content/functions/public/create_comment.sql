create or replace function public.create_comment(article_id bigint, content text) returns public.comments as $$
declare
  v_comment public.comments;
begin
  if auth.uid() is null then
    raise exception 'Sign in to write a comment' using errcode = 'LOGIN';
  end if;
  if not exists (select from public.articles where articles.id = create_comment.article_id) then
    raise exception 'There is no article with that id' using errcode = 'NTFND', detail = 'article_id';
  end if;
  insert into public.comments (article_id, content) values (create_comment.article_id, create_comment.content)
    returning * into v_comment;
  return v_comment;
end;
$$ language plpgsql volatile set search_path = '';
grant execute on function public.create_comment to anon, authenticated, service_role;
comment on function public.create_comment is 'Comment on an article, as the user who is signed in.';
