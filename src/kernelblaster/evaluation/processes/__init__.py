"""A candidate's running processes and their files: started early, timed in pairs, ended while something else goes on.

Starts and ends processes and hands out their sessions; judges neither values nor times.
"""
