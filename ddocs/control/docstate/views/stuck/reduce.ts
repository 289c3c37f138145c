export default '_stats'
