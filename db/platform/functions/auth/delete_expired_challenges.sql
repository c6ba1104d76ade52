-- Expired ones are kept for a while, so that a late answer is told that its challenge has expired.
create or replace function auth.delete_expired_challenges() returns void as $$
  delete from auth.mfa_challenges where id in (
    select id from auth.mfa_challenges where expires_at < now() - interval '10 minutes'
    order by expires_at limit 10 for update skip locked
  );
$$ language sql set search_path = '';
comment on function auth.delete_expired_challenges is 'Deletes a few challenges that have expired.';
