export default '_count'
